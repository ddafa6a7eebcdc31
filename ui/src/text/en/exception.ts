import type { Schemas } from '@/api/client'

export const exception = {
  title: 'Allow for a while',
  titleOf: (device: string) => `Exception for ${device}`,
  device: 'Device',
  choose: 'choose',
  deviceMissing: 'Choose a device first.',
  type: 'Type',
  types: {
    'temporary-direct': 'Direct for a while',
    'service-allowlist': 'Some destinations only',
    'emergency-bypass': 'Emergency bypass',
    'diagnostic-bypass': 'Bypass for a diagnosis',
    'captive-portal': 'Sign in to a captive portal',
    quarantine: 'Quarantine',
  } satisfies Record<Schemas['ExceptionType'], string>,
  effects: {
    'temporary-direct':
      'The device goes out directly, in the clear, past its policies. It counts in the verdict.',
    'service-allowlist': 'The device reaches these destinations directly. All else follows its policies.',
    'emergency-bypass':
      'The device goes out directly, in the clear, past its policies. It counts in the verdict.',
    'diagnostic-bypass':
      'The device goes out directly, in the clear, past its policies. It counts in the verdict.',
    'captive-portal': 'The device may open the sign-in page of the network in front of the gateway.',
    quarantine: 'The device is cut off from the network until the exception ends.',
  } satisfies Record<Schemas['ExceptionType'], string>,
  targets: 'Destinations',
  targetsHint: 'Addresses, networks, address:port, a port as :443, or domains, separated by commas.',
  duration: 'Duration',
  durations: { '15': '15 min', '60': '60 min', '240': '4 h', '1440': '24 h' },
  minutes: 'Minutes',
  ends: (time: string) => `Ends by itself at ${time}, also when the daemon is stopped.`,
  reason: 'Reason',
  reasonHint: 'Stands in the audit log.',
  allow: 'Allow',
  quarantine: 'Quarantine',
  made: (time: string) => `The exception holds until ${time}.`,
  ended: 'The exception is ended.',
  prolonged: 'The exception holds 30 minutes longer.',
  endNow: 'End now',
  addMinutes: 'Add 30 min',
  until: (time: string) => `ends ${time}`,
  by: (who: string) => `by ${who}`,
}
