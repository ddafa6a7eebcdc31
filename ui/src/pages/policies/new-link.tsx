import { LinkButton } from '@/components/link-button'
import { useText } from '@/text'

/** Opens the form of a new policy. */
export function NewPolicy() {
  const text = useText()
  return (
    <LinkButton kind="primary" icon="plus" needs="operator" to="/policies/new">
      {text.policies.newPolicy}
    </LinkButton>
  )
}
