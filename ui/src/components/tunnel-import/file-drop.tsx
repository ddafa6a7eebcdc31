// A place for a file: it is dropped, chosen or pasted.

import { useRef, useState } from 'react'
import { Button } from '@/components/button'
import { TextArea } from '@/components/fields'
import { useText } from '@/text'
import { kindOf } from './file'

/** Size in bytes above which a file is no tunnel file. */
const LARGEST = 256 * 1024

export function FileDrop({ onFile }: { onFile: (content: string, name: string) => void }) {
  const text = useText()
  const words = text.paths.import
  const input = useRef<HTMLInputElement>(null)
  const [over, setOver] = useState(false)
  const [tooLarge, setTooLarge] = useState(false)
  const [pasted, setPasted] = useState('')
  const [unknown, setUnknown] = useState(false)
  const take = async (file: File | undefined) => {
    if (!file) return
    setTooLarge(file.size > LARGEST)
    if (file.size > LARGEST) return
    const content = await file.text()
    setUnknown(kindOf(content) === null)
    if (kindOf(content) !== null) onFile(content, file.name)
  }
  return (
    <>
      {/* Dropping is a shortcut; the button and the text field below do the same. */}
      <div
        className={over ? 'filedrop is-over' : 'filedrop'}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault()
          setOver(false)
          void take(event.dataTransfer.files[0])
        }}
      >
        <p>{words.drop}</p>
        <Button icon="download" onClick={() => input.current?.click()}>
          {words.choose}
        </Button>
        <input
          ref={input}
          type="file"
          className="sr"
          tabIndex={-1}
          aria-label={words.choose}
          accept=".conf,.ovpn,text/plain"
          onChange={(event) => void take(event.target.files?.[0])}
        />
        {tooLarge ? (
          <p className="med" role="alert">
            {words.tooLarge}
          </p>
        ) : unknown ? (
          <p className="med" role="alert">
            {words.notKnown}
          </p>
        ) : null}
      </div>
      <TextArea
        label={words.paste}
        hint={words.pasteHint}
        value={pasted}
        rows={8}
        spellCheck={false}
        onChange={(value) => {
          setPasted(value)
          // What is pasted comes at once; what is typed is taken when the field is left.
          if (value.length - pasted.length > 20 && kindOf(value) !== null) onFile(value, '')
        }}
        onBlur={() => {
          setUnknown(pasted.trim() !== '' && kindOf(pasted) === null)
          if (kindOf(pasted) !== null) onFile(pasted, '')
        }}
      />
    </>
  )
}
