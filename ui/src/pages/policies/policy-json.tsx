import { useState } from 'react'
import { TextArea } from '@/components/fields'
import { useText } from '@/text'
import type { Draft } from './model'

/** The draft as JSON. What is no JSON yet stays in the field and changes nothing. */
export function PolicyJson({ value, onChange }: { value: Draft; onChange: (value: Draft) => void }) {
  const text = useText()
  const [written, setWritten] = useState(() => JSON.stringify(value, null, 2))
  const [error, setError] = useState<string>()
  return (
    <TextArea
      label={text.policies.jsonLabel}
      hint={text.policies.jsonHint}
      error={error}
      rows={26}
      spellCheck={false}
      value={written}
      onChange={(next) => {
        setWritten(next)
        try {
          const parsed: unknown = JSON.parse(next)
          if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) throw new Error('{ … }')
          setError(undefined)
          onChange({ ...value, ...parsed })
        } catch (failed) {
          setError(text.policies.jsonInvalid((failed as Error).message))
        }
      }}
    />
  )
}
