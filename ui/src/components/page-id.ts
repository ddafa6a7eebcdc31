// The id in the address of a detail page.

import { usePath } from '@/session/link'

/** The last part of the address: `wg-a` of `/paths/tunnels/wg-a`. */
export function usePageId(): string {
  return decodeURIComponent(usePath().split('/').filter(Boolean).at(-1) ?? '')
}
