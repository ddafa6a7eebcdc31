// The objects that make the rows of the leak matrix: policies, exceptions, profiles of devices, bridges, and prefixes
// of mesh peers.

export interface Origins {
  /** Exceptions that are active. */
  exceptions: readonly { id: string; type: string }[]
  /** The rows in force, with the kind of object that makes each. */
  graph: readonly { id: string; origin: string }[]
}

/** The kind of object that makes a row. One that is not in force yet is a policy. */
export function originOf(id: string, { exceptions, graph }: Origins): string {
  if (exceptions.some((each) => each.id === id)) return 'exception'
  return graph.find((each) => each.id === id)?.origin ?? 'policy'
}

/** The page of what makes a row. */
export function addressOf(id: string, origins: Origins | null | undefined): string {
  switch (origins ? originOf(id, origins) : 'policy') {
    case 'exception':
      return '/policies/exceptions'
    case 'profile':
      return `/policies/profiles/${id}`
    case 'bridge':
      return `/paths/bridges/${id}`
    case 'mesh':
      return '/network/mesh'
    default:
      return `/policies/${id}`
  }
}
