import { useGo } from '@/app/link'
import { Button } from '@/components/button'

/** A button that leads to the list of an object. */
export function Back({ to, children }: { to: string; children: string }) {
  const go = useGo()
  return (
    <Button kind="ghost" onClick={() => go(to)}>
      {children}
    </Button>
  )
}
