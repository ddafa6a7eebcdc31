// Two changes of one thing: for each field that both changed, the choice between them.

import { useState } from 'react'
import { useText } from '@/text'
import { Button } from './button'
import { Dialog } from './dialog'
import type { Clash } from './draft'
import { Table } from './table'

interface Props {
  clashes: Clash[]
  onClose: () => void
  /** Called with the names of the fields that keep the other's value. */
  onMerge: (theirs: string[]) => void
}

export function MergeDialog({ clashes, onClose, onMerge }: Props) {
  const text = useText()
  const [theirs, setTheirs] = useState<string[]>([])
  return (
    <Dialog open onClose={onClose} title={text.merge.title} wide>
      <p className="mid">{clashes.length === 0 ? text.merge.noClash : text.merge.sentence}</p>
      {clashes.length > 0 ? (
        <Table
          rows={clashes}
          id={({ field }) => field}
          columns={[
            { head: text.merge.field, heading: true, cell: ({ field }) => <code>{field}</code> },
            { head: text.merge.base, cell: ({ base }) => show(base) },
            {
              head: text.merge.yours,
              cell: ({ field, yours }) => (
                <label className="check">
                  <input
                    type="radio"
                    name={field}
                    checked={!theirs.includes(field)}
                    onChange={() => setTheirs(theirs.filter((each) => each !== field))}
                  />
                  {show(yours)}
                </label>
              ),
            },
            {
              head: text.merge.theirs,
              cell: ({ field, theirs: other }) => (
                <label className="check">
                  <input
                    type="radio"
                    name={field}
                    checked={theirs.includes(field)}
                    onChange={() => setTheirs([...theirs, field])}
                  />
                  {show(other)}
                </label>
              ),
            },
          ]}
        />
      ) : null}
      <div className="btns">
        <Button kind="primary" onClick={() => onMerge(theirs)}>
          {text.merge.save}
        </Button>
        <Button kind="ghost" onClick={onClose}>
          {text.common.cancel}
        </Button>
      </div>
    </Dialog>
  )
}

function show(value: unknown) {
  return <code>{typeof value === 'string' ? value : JSON.stringify(value)}</code>
}
