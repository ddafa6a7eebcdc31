// A new proxy.

import { NewObject } from '@/components/object-form'
import { useText } from '@/text'
import { allProxies, ProxyFields } from './proxy-form'

export default function NewProxy() {
  const words = useText().paths.proxies
  return (
    <NewObject
      resource={allProxies}
      question={words.newQuestion}
      answer={words.newAnswer}
      title={words.new}
      back="/paths/proxies"
      next={({ id }) => `/paths/proxies/${id}`}
    >
      {(edit) => <ProxyFields edit={edit} />}
    </NewObject>
  )
}
