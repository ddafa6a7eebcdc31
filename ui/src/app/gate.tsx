// Before the pages: the first run, sign-in, or no daemon.

import { lazy, Suspense, type ReactNode } from 'react'
import { Logo, Sprite } from '@/components/icons'
import { Failure, Skeleton } from '@/components/section'
import { useText } from '@/text'
import { useCaller } from '@/session/caller'
import { SignInForm } from '@/components/sign-in'
import { useWizard } from '@/session/first-run'

const Wizard = lazy(() => import('@/pages/wizard/wizard'))

export function Gate({ children }: { children: ReactNode }) {
  const { query, status } = useCaller()
  const wizard = useWizard(status?.setup_required ?? false)
  if (!status) {
    if (!query.error) return <Skeleton lines={4} />
    return (
      <Alone>
        <Failure error={query.error} retry={() => void query.refetch()} />
      </Alone>
    )
  }
  if (wizard.open)
    return (
      <Suspense fallback={<Skeleton lines={4} />}>
        <Wizard onClose={wizard.close} />
      </Suspense>
    )
  if (status.enabled && status.role === null) return <SignIn />
  return children
}

function SignIn() {
  const text = useText()
  return (
    <Alone>
      <h1>{text.shell.signIn}</h1>
      <SignInForm onDone={() => undefined} />
    </Alone>
  )
}

/** A single panel in the middle of an empty page. */
function Alone({ children }: { children: ReactNode }) {
  const text = useText()
  return (
    <main className="alone">
      <Sprite />
      <p className="brand">
        <Logo />
        <span>{text.shell.product}</span>
      </p>
      {children}
    </main>
  )
}
