import { LinkButton } from '@/components/link-button'

/** Back to the list. */
export function Back({ to, children }: { to: string; children: string }) {
  return (
    <LinkButton kind="ghost" to={to}>
      {children}
    </LinkButton>
  )
}
