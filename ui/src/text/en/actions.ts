/** An action of the audit trail, or a kind of object, in words: `apply routing policies`. */
export const actions = {
  action: (code: string) => code.replaceAll('_', ' '),
  object: (code: string) => code.replaceAll('_', ' '),
}
