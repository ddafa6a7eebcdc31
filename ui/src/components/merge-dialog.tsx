// Two changes of one thing: for each field that both changed, the choice between them.

import { useState } from 'react'
import { useText } from '@/text'
import { Button } from './button'
import { Dialog } from './dialog'
import type { Clash } from './draft'

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
        <table className="tbl tbl--card">
          <thead>
            <tr>
              <th scope="col">{text.merge.field}</th>
              <th scope="col">{text.merge.base}</th>
              <th scope="col">{text.merge.yours}</th>
              <th scope="col">{text.merge.theirs}</th>
            </tr>
          </thead>
          <tbody>
            {clashes.map(({ field, base, yours, theirs: other }) => (
              <tr key={field}>
                <th scope="row">
                  <code>{field}</code>
                </th>
                <td data-l={text.merge.base}>{show(base)}</td>
                <td data-l={text.merge.yours}>
                  <label className="check">
                    <input
                      type="radio"
                      name={field}
                      checked={!theirs.includes(field)}
                      onChange={() => setTheirs(theirs.filter((each) => each !== field))}
                    />
                    {show(yours)}
                  </label>
                </td>
                <td data-l={text.merge.theirs}>
                  <label className="check">
                    <input
                      type="radio"
                      name={field}
                      checked={theirs.includes(field)}
                      onChange={() => setTheirs([...theirs, field])}
                    />
                    {show(other)}
                  </label>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
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
