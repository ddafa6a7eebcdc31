// A menu that leads to the form of a capture, with what is to be captured.

import type { Schemas } from '@/api/client'
import { isSupported } from '@/api/operations'
import { useGo } from '@/session/link'
import { useText } from '@/text'
import { Icon } from './icons'
import { Actions } from './menu'

/** A capture to offer: of a device, or at an interface; all packets, or those of a kind. */
export interface CaptureOffer {
  device?: string
  interface?: string
  preset?: Schemas['CapturePresetName']
}

interface Props {
  label: string
  offers: readonly CaptureOffer[]
  small?: boolean
}

export function CaptureMenu({ label, offers, small }: Props) {
  const words = useText().captures
  const go = useGo()
  if (!isSupported('POST /diagnostics/capture')) return null
  return (
    <Actions
      label={label}
      button={
        <>
          <Icon name="capture" />
          {label}
        </>
      }
      small={small}
      actions={offers.map((offer) => ({
        id: JSON.stringify(offer),
        label: [
          offer.preset ? words.presets[offer.preset] : words.noPreset,
          offer.interface === undefined ? '' : words.placeOf(offer.interface),
        ]
          .filter(Boolean)
          .join(', '),
        needs: 'operator',
        run: () => go('/activity/captures', { ...offer }),
      }))}
    />
  )
}
