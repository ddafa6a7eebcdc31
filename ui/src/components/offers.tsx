// The list below a field that finds: the field keeps the focus, and its keys choose.

import type { ReactNode } from 'react'

interface Offer {
  id: string
  name: string
}

interface Props<T extends Offer> {
  /** The row `n` has the id `${id}-${n}`. */
  id: string
  label: string
  shown: boolean
  /** Row that Enter would choose. */
  at: number
  offered: readonly T[]
  onChoose: (offer: T) => void
  children?: ReactNode
}

export function Offers<T extends Offer>({ id, label, shown, at, offered, onChoose, children }: Props<T>) {
  return (
    <div id={id} role="listbox" aria-label={label} className="pickone__list" hidden={!shown}>
      {offered.map((offer, index) => (
        // The field has the focus, and its keys choose.
        // eslint-disable-next-line jsx-a11y/click-events-have-key-events
        <div
          key={offer.id}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === at}
          // The field keeps the focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(offer)}
        >
          {offer.name}
        </div>
      ))}
      {children}
    </div>
  )
}
