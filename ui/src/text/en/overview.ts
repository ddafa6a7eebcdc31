export const overview = {
  label: 'Overview',
  question: 'Is anything leaking right now?',
  since: (time: string) => `Since ${time}`,
}
