// Choices among many things, such as devices: a search by name, and a list that draws what is in view only.

import { useVirtualizer } from '@tanstack/react-virtual'
import { useId, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { useText } from '@/text'
import { Field, Select, TextField } from './fields'
import { Offers } from './offers'

/** A thing to choose. */
export interface Pickable {
  id: string
  name: string
  /** More by which it is found, such as its addresses. */
  hint?: string
}

/** Number of things up to which a list needs no search. */
const FEW = 12
/** Findings that the list of one choice has at most. */
const OFFERED = 50
const ROW_HEIGHT = 34

/** Returns the things whose name or hint contains each word. */
export function matching<T extends Pickable>(all: readonly T[], typed: string): readonly T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return all
  return all.filter((each) => {
    const said = `${each.name} ${each.hint ?? ''}`.toLowerCase()
    return words.every((word) => said.includes(word))
  })
}

interface ManyProps {
  label: ReactNode
  all: readonly Pickable[]
  chosen: readonly string[]
  /** What is said where there is nothing to choose. */
  none?: string
  hint?: string
  error?: string
  onChange: (chosen: string[]) => void
}

/** Several of many things. Ids of things that are gone stay on the list until they are cleared. */
export function PickMany({ label, all, chosen, none, hint, error, onChange }: ManyProps) {
  const text = useText()
  const [typed, setTyped] = useState('')
  // What was chosen when the form was opened is on top, so that nothing moves under the pointer.
  const [first] = useState(() => new Set(chosen))
  const list = useMemo(() => {
    const known = new Set(all.map((each) => each.id))
    const gone = [...first].filter((id) => !known.has(id)).map((id) => ({ id, name: id }))
    const found = matching([...gone, ...all], typed)
    return [...found.filter((each) => first.has(each.id)), ...found.filter((each) => !first.has(each.id))]
  }, [all, typed, first])
  const picked = useMemo(() => new Set(chosen), [chosen])
  const flip = (id: string, on: boolean) =>
    onChange(on ? [...chosen, id] : chosen.filter((each) => each !== id))
  return (
    <fieldset className="formrow wide">
      <legend className="med">
        {label} <span className="dim">{text.common.chosenOf(chosen.length, all.length)}</span>
      </legend>
      {all.length > FEW ? (
        <TextField label={text.common.filter} value={typed} autoComplete="off" onChange={setTyped} />
      ) : null}
      {list.length === 0 ? (
        <p className="dim">{all.length === 0 && none ? none : text.common.none}</p>
      ) : (
        <Rows list={list}>
          {(each) => (
            <label className="check">
              <input
                type="checkbox"
                checked={picked.has(each.id)}
                onChange={(event) => flip(each.id, event.target.checked)}
              />
              <span>{each.name}</span> {each.hint ? <span className="dim sm">{each.hint}</span> : null}
            </label>
          )}
        </Rows>
      )}
      {error ? <p className="formrow__error">{error}</p> : null}
      {hint ? <p className="dim sm">{hint}</p> : null}
    </fieldset>
  )
}

/** Rows of one height, of which only those in view are drawn. */
function Rows({ list, children }: { list: readonly Pickable[]; children: (each: Pickable) => ReactNode }) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: list.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => list[index]?.id ?? index,
    overscan: 6,
  })
  const drawn = rows.getVirtualItems()
  const first = drawn[0]?.start ?? 0
  const last = drawn.at(-1)?.end ?? 0
  return (
    <div className="picker" ref={scroller}>
      <Gap height={first} />
      {drawn.map(({ key, index }) => {
        const each = list[index]
        return each ? (
          <div key={key} className="picker__row" data-index={index} ref={rows.measureElement}>
            {children(each)}
          </div>
        ) : null
      })}
      <Gap height={rows.getTotalSize() - last} />
    </div>
  )
}

/** Room of the rows that are not drawn. The page has no inline styles, so its height is an attribute of a drawing. */
function Gap({ height }: { height: number }) {
  return height > 0 ? <svg className="picker__gap" width="1" height={height} aria-hidden="true" /> : null
}

interface OneProps {
  label: ReactNode
  hint?: ReactNode
  error?: string
  value: string
  options: readonly (readonly [value: string, label: string])[]
  onChange: (value: string) => void
  disabled?: boolean
}

interface PickOneProps extends OneProps {
  /** Not all options are read yet: their number decides what the field is, and keys typed before would be lost. */
  loading?: boolean
}

/** One of some things: a list of the browser for few, a field that finds by parts of the name for many. */
export function PickOne({ loading = false, ...rest }: PickOneProps) {
  const props = { ...rest, disabled: rest.disabled || loading }
  return props.options.length <= FEW ? <Select {...props} /> : <Finder {...props} />
}

function Finder({ label, hint, error, value, options, onChange, disabled }: OneProps) {
  const text = useText()
  const list = useId()
  const [typed, setTyped] = useState<string | null>(null)
  const [at, setAt] = useState(0)
  const all = useMemo(() => options.map(([id, name]) => ({ id, name })), [options])
  const chosen = all.find((each) => each.id === value)?.name ?? value
  const found = useMemo(() => (typed === null ? [] : matching(all, typed)), [all, typed])
  const offered = found.slice(0, OFFERED)
  const open = typed !== null
  const close = () => {
    setTyped(null)
    setAt(0)
  }
  const choose = (each: Pickable | undefined) => {
    if (each) onChange(each.id)
    close()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (!open) setTyped('')
      else setAt(Math.max(0, Math.min(offered.length - 1, at + (event.key === 'ArrowDown' ? 1 : -1))))
    } else if (open && event.key === 'Enter') choose(offered[at])
    else if (open && event.key === 'Escape') close()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <div className="pickone">
          <input
            id={id}
            className={error ? 'field invalid' : 'field'}
            role="combobox"
            aria-expanded={open}
            aria-controls={list}
            aria-autocomplete="list"
            aria-activedescendant={open && offered.length > 0 ? `${list}-${at}` : undefined}
            aria-invalid={error ? true : undefined}
            aria-describedby={describedBy}
            autoComplete="off"
            spellCheck={false}
            disabled={disabled}
            value={typed ?? chosen}
            onChange={(event) => {
              setTyped(event.target.value)
              setAt(0)
            }}
            onFocus={(event) => event.target.select()}
            onClick={() => setTyped(typed ?? '')}
            onBlur={close}
            onKeyDown={press}
          />
          <Offers
            id={list}
            label={text.shell.findings}
            shown={open}
            at={at}
            offered={offered}
            onChoose={choose}
          >
            {open && found.length > offered.length ? (
              <p className="dim sm">{text.common.narrow(offered.length, found.length)}</p>
            ) : null}
            {open && found.length === 0 ? <p className="dim sm">{text.shell.nothingFound}</p> : null}
          </Offers>
        </div>
      )}
    </Field>
  )
}
