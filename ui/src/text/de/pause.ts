import type { Text } from '..'

export const pause: Text['pause'] = {
  title: 'Sperren aussetzen',
  minutes: (minutes) => `${minutes} min`,
  pauseFor: (minutes) => `Sperren für ${minutes} min aussetzen`,
  paused: (time) => `Das Sperren ist bis ${time} ausgesetzt: Kein Name wird gesperrt.`,
  left: (age) => `noch ${age}`,
  resume: 'Wieder sperren',
  begun: (time) => `Das Sperren ist bis ${time} ausgesetzt.`,
  ended: 'Namen werden wieder gesperrt.',
  off: 'Der Filter ist aus: Kein Name wird gesperrt.',
}
