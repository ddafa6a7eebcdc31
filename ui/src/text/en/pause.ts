export const pause = {
  title: 'Pause blocking',
  minutes: (minutes: number) => `${minutes} min`,
  pauseFor: (minutes: number) => `Pause blocking for ${minutes} min`,
  paused: (time: string) => `Blocking is paused until ${time}: no name is blocked.`,
  left: (age: string) => `${age} left`,
  resume: 'Resume blocking',
  begun: (time: string) => `Blocking is paused until ${time}.`,
  ended: 'Names are blocked again.',
  off: 'The filter is off: no name is blocked.',
}
