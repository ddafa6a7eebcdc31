import { useGo } from '@/app/link'
import { Button } from '@/components/button'
import { useText } from '@/text'

/** Opens the form of a new policy. */
export function NewPolicy() {
  const text = useText()
  const go = useGo()
  return (
    <Button kind="primary" icon="plus" needs="operator" onClick={() => go('/policies/new')}>
      {text.policies.newPolicy}
    </Button>
  )
}
