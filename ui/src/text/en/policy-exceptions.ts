import type { Schemas } from '@/api/client'

const count = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`

/** Texts of exceptions from policies. */
export const policyExceptions = {
  exceptionAnswer: (n: number, direct: number): string =>
    n === 0
      ? 'No exception is active.'
      : `${count(n, 'exception is', 'exceptions are')} active, ${direct === 0 ? 'none lets' : `${direct} ${direct === 1 ? 'lets' : 'let'}`} a device out directly.`,
  exceptionQuestion: 'Who is let out for a while?',
  exceptions: 'Exceptions',
  exceptionsHint: 'They come before all policies and end by themselves.',
  exceptionsEmpty: 'An exception lets one device out, or cuts it off, for a limited time and with a reason.',
  exceptionTypes: {
    'emergency-bypass': 'Emergency bypass',
    'diagnostic-bypass': 'Diagnostic bypass',
    'service-allowlist': 'Allow some targets',
    'temporary-direct': 'Temporarily direct',
    quarantine: 'Quarantine',
    'captive-portal': 'Captive portal',
  } satisfies Record<Schemas['ExceptionType'], string>,
  exceptionMeans: {
    'emergency-bypass': 'The device leaves by the default route, because something else must not wait.',
    'diagnostic-bypass': 'The device leaves by the default route, for diagnosis.',
    'service-allowlist': 'Only these targets are reached by the default route.',
    'temporary-direct': 'The device leaves by the default route, or by the hops of a profile.',
    quarantine: 'Nothing of the device passes the gateway.',
    'captive-portal': 'Only DNS and the web leave by the default route, to log in at a portal.',
  } satisfies Record<Schemas['ExceptionType'], string>,
  exceptionStatus: {
    planned: 'Planned',
    active: 'Active',
    expired: 'Ended',
    revoked: 'Ended early',
  } as Record<string, string>,
  exceptionType: 'Kind',
  exceptionDevice: 'Device',
  exceptionUntil: 'Until',
  exceptionReason: 'Reason',
  exceptionBy: (user: string) => `by ${user}`,
  exceptionLeft: (age: string) => `${age} left`,
  endsAt: (time: string) => `ends ${time}`,
  duration: 'Duration in minutes',
  durations: [
    [15, '15 min'],
    [60, '1 h'],
    [240, '4 h'],
    [1440, '24 h'],
  ] as [number, string][],
  durationHint: '1 to 1440.',
  reasonHint: 'It appears in the audit log and beside the exception.',
  reasonMissing: 'Say why.',
  targets: 'Targets',
  targetsHint: 'One each line: an address, a network, address:port, :443, example.com, =example.com.',
  allowDirect: 'Let the device out without a tunnel',
  allowDirectHint: 'Without this a bypass has no effect.',
  exceptionProfile: 'By the hops of a profile instead of the default route',
  startException: 'Start exception',
  exceptionStarted: (name: string) => `The exception for ${name} is active.`,
  composer: 'New exception',
  endNow: 'End now',
  exceptionEnded: (name: string) => `The exception for ${name} has ended.`,
  extend: (label: string) => `Extend by ${label}`,
  extended: (name: string, time: string) => `The exception for ${name} now ends ${time}.`,
  extendedTwice: 'The longer exception is active. The old one could not be ended and ends by itself.',
  past: 'Ended',
}
