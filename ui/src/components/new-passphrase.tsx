// A new passphrase, which is typed twice.

import { useState } from 'react'
import { TextField } from './fields'
import { PasswordField } from './password-field'

export interface NewPassphrase {
  value: string
  repeated: string
  setValue: (value: string) => void
  setRepeated: (value: string) => void
  /** Both are the same. */
  isComplete: boolean
  clear: () => void
}

export function useNewPassphrase(): NewPassphrase {
  const [value, setValue] = useState('')
  const [repeated, setRepeated] = useState('')
  return {
    value,
    repeated,
    setValue,
    setRepeated,
    isComplete: value !== '' && value === repeated,
    clear: () => {
      setValue('')
      setRepeated('')
    },
  }
}

interface FieldsProps {
  passphrase: NewPassphrase
  label: string
  texts: { passphraseHint: string; repeat: string; differ: string }
  error?: string
}

export function NewPassphraseFields({ passphrase, label, texts, error }: FieldsProps) {
  const { value, repeated, setValue, setRepeated } = passphrase
  return (
    <>
      <PasswordField
        label={label}
        hint={texts.passphraseHint}
        value={value}
        error={error}
        onChange={setValue}
        fresh
        required
      />
      <TextField
        label={texts.repeat}
        type="password"
        autoComplete="new-password"
        value={repeated}
        error={repeated !== '' && repeated !== value ? texts.differ : undefined}
        onChange={setRepeated}
        required
      />
    </>
  )
}
