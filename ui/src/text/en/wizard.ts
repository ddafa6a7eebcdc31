export const wizard = {}
