// The editor of a policy: a form and its JSON over one draft, checked by the gateway while it is written.

import { useEffect, useRef, useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { ApiError, call, client } from '@/api/client'
import { get } from '@/api/query'
import { useGo } from '@/app/link'
import { useSearchParams } from '@/app/search-params'
import { say } from '@/app/toasts'
import { Answer } from '@/components/answer'
import { Button } from '@/components/button'
import { merge, same, useDraft, type Clash } from '@/components/draft'
import { ErrorSummary } from '@/components/fields'
import { MergeDialog } from '@/components/merge-dialog'
import { Failure } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { useText } from '@/text'
import { useDryRun } from './data'
import { DeletePolicy } from './delete-policy'
import { inputOf, type Draft, type Policy, type PolicyInput } from './model'
import { Checked } from './policy-check'
import { PolicyForm } from './policy-form'
import { useSaveKey } from './save-key'
import { PolicyJson } from './policy-json'
import { PolicyPreview } from './policy-preview'

interface Props {
  /** Null for a new one. */
  policy: Policy | null
  start: Draft
}

export function PolicyEditor({ policy, start }: Props) {
  const text = useText()
  const go = useGo()
  const queries = useQueryClient()
  const [search, setSearch] = useSearchParams()
  // The version that is edited, and its revision.
  const [base, setBase] = useState({ value: start, revision: policy?.revision ?? 0 })
  const draft = useDraft<Draft>(`policy.${policy?.id ?? 'new'}`, base.value)
  const [error, setError] = useState<Error | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const [busy, setBusy] = useState(false)
  const [deleting, setDeleting] = useState(false)
  const [clash, setClash] = useState<{ merged: Draft; clashes: Clash[]; theirs: Policy } | null>(null)
  const settled = useSettled(draft.value)
  const check = useDryRun(
    { policies: [{ ...(policy ? { id: policy.id } : {}), ...settled }] },
    settled.name !== '' || policy !== null,
  )
  const json = search.as === 'json'

  // Somebody else saved it, and nothing was written here: the new version is shown.
  if (policy && policy.revision !== base.revision && !draft.dirty && !busy) {
    const value = inputOf(policy)
    setBase({ value, revision: policy.revision })
    draft.replace(value)
  }

  const save = async (value: Draft, revision: number) => {
    setBusy(true)
    setError(null)
    const body = value as PolicyInput as Required<PolicyInput>
    try {
      const answer = policy
        ? await call(
            client.PUT('/routing/policies/{id}', {
              params: { path: { id: policy.id }, header: { 'If-Match': `"${revision}"` } },
              body,
            }),
          )
        : await call(client.POST('/routing/policies', { body }))
      say(text.policies.savedSay(answer.data.name), answer.warnings)
      draft.discard()
      const saved = inputOf(answer.data)
      setBase({ value: saved, revision: answer.data.revision })
      draft.replace(saved)
      await queries.invalidateQueries()
      if (!policy) go(`/policies/${answer.data.id}`)
    } catch (failed) {
      if (policy && failed instanceof ApiError && failed.status === 412) {
        const theirs = (await get('/routing/policies/{id}', { path: { id: policy.id } })).data
        setClash({ ...merge(base.value, value, inputOf(theirs)), theirs })
      } else setError(failed as Error)
    }
    setBusy(false)
  }
  const submit = () => void save(draft.value, base.revision)
  useSaveKey(form)
  const problem = error instanceof ApiError ? error : null

  return (
    <>
      <Answer
        question={text.policies.question}
        actions={
          policy ? (
            <Button needs="operator" onClick={() => setDeleting(true)}>
              {text.common.delete}
            </Button>
          ) : undefined
        }
      >
        {policy ? <Said draft={draft.value} /> : text.policies.create}
      </Answer>
      <div className="cols cols--why">
        <form
          ref={form}
          className="sec policyform"
          onSubmit={(event) => {
            event.preventDefault()
            submit()
          }}
        >
          <div className="sec__h">
            <Segmented
              label={text.policies.formOrJson}
              value={json ? 'json' : 'form'}
              options={[
                ['form', text.policies.form],
                ['json', text.policies.json],
              ]}
              onChange={(as) => setSearch({ as: as === 'json' ? 'json' : undefined })}
            />
            {draft.dirty ? <p>{text.policies.draftKept}</p> : null}
          </div>
          {problem ? <ErrorSummary error={problem} /> : error ? <Failure error={error} /> : null}
          {json ? (
            <PolicyJson value={draft.value} onChange={draft.replace} />
          ) : (
            <PolicyForm
              draft={draft}
              errorOf={(path) => problem?.of(path) ?? fieldError(check.data?.data, path)}
            />
          )}
          <div className="btns formend">
            <Button
              kind="primary"
              submit
              needs="operator"
              busy={busy}
              disabled={policy !== null && !draft.dirty}
            >
              {text.policies.saveNotActive}
            </Button>
            {draft.dirty && policy ? (
              <Button
                kind="ghost"
                onClick={() => {
                  draft.discard()
                  setError(null)
                }}
              >
                {text.policies.discardDraft}
              </Button>
            ) : null}
            <Button kind="ghost" onClick={() => go('/policies')}>
              {text.policies.backToOrder}
            </Button>
          </div>
        </form>
        <div className="sec">
          <PolicyPreview policy={policy} draft={draft.value} />
          <Checked
            query={check}
            name={settled.name}
            pending={!same(settled, draft.value)}
            started={settled.name !== '' || policy !== null}
          />
        </div>
      </div>
      {policy ? (
        <DeletePolicy
          policy={policy}
          open={deleting}
          onClose={() => setDeleting(false)}
          onDeleted={() => {
            draft.discard()
            go('/policies')
          }}
        />
      ) : null}
      {clash ? (
        <MergeDialog
          clashes={clash.clashes}
          onClose={() => setClash(null)}
          onMerge={(theirs) => {
            const other = inputOf(clash.theirs) as Record<string, unknown>
            const merged = Object.fromEntries(
              Object.entries(clash.merged).map(([field, value]) => [
                field,
                theirs.includes(field) ? other[field] : value,
              ]),
            ) as Draft
            setBase({ value: inputOf(clash.theirs), revision: clash.theirs.revision })
            draft.replace(merged)
            setClash(null)
            void save(merged, clash.theirs.revision)
          }}
        />
      ) : null}
    </>
  )
}

/** What the policy does when all is down, in a sentence. */
function Said({ draft }: { draft: Draft }) {
  const text = useText()
  const fail = draft.fail_policy ?? 'fail-closed'
  const what =
    draft.hops.length === 0 && !draft.profile && !draft.chain
      ? fail === 'fail-open'
        ? text.policies.noHopsOpen
        : text.policies.noHopsClosed
      : (text.policies.failSentence[fail] ?? fail)
  return <>{text.policies.answerNow(draft.name, what)}</>
}

/** The problem that the dry run has with a field. */
function fieldError(
  result: { errors: { path: string; message: string }[] } | undefined,
  path: string,
): string | undefined {
  return result?.errors.find((problem) => stripped(problem.path) === path)?.message
}

export function stripped(path: string): string {
  return path.replace(/^resources\.policies\[0\]\.?/, '')
}

/** A value that is written is passed on once it rests. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), 400)
    return () => window.clearTimeout(timer)
  }, [value])
  return settled
}
