import { useText } from '@/text'
import { Link } from '@/session/link'

export function NotFound() {
  const text = useText()
  return (
    <section className="answer">
      <p className="answer__q">{text.shell.notFound}</p>
      <h1>
        <Link to="/">{text.overview.label}</Link>
      </h1>
    </section>
  )
}
