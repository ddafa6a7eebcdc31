export const dns = {}
