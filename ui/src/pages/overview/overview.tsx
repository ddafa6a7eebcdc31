import { useVerdict } from '@/app/verdict'
import { useText } from '@/text'

export default function Overview() {
  const text = useText()
  const verdict = useVerdict()
  return (
    <section className={`verdict v-${verdict.state}`}>
      <h1>{verdict.last?.sentence ?? text.common.loading}</h1>
    </section>
  )
}
