// The editor of a policy: a form and its JSON over one draft, checked by the gateway while it is written.

import { useRef, useState } from 'react'
import { call, client } from '@/api/client'
import { get } from '@/api/query'
import { useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Answer } from '@/components/answer'
import { Button } from '@/components/button'
import { LinkButton } from '@/components/link-button'
import { same, type Version } from '@/components/draft'
import { useEdit, type Edit } from '@/components/edit'
import { Segmented } from '@/components/segmented'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { useDryRun } from './data'
import { DeletePolicy } from './delete-policy'
import { inputOf, type Draft, type Policy, type PolicyInput } from './model'
import { Checked } from './policy-check'
import { PolicyForm } from './policy-form'
import { useSaveKey } from './save-key'
import { PolicyJson } from './policy-json'
import { PolicyPreview } from './policy-preview'
import { useSettled } from './use-settled'

interface Props {
  /** Null for a new one. */
  policy: Policy | null
  /** What it starts with, and its entity tag. */
  start: Version<Draft>
}

export function PolicyEditor({ policy, start }: Props) {
  const text = useText()
  const go = useGo()
  const [deleting, setDeleting] = useState(false)
  const edit = usePolicyEdit(policy, start)
  const { draft } = edit
  const settled = useSettled(draft.value)
  const check = useDryRun(
    { policies: [{ ...(policy ? { id: policy.id } : {}), ...settled }] },
    settled.name !== '' || policy !== null,
  )

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
        <EditorForm
          policy={policy}
          edit={edit}
          errorOf={(path) => edit.of(path) ?? fieldError(check.data?.data, path)}
        />
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
      {edit.dialog}
    </>
  )
}

function usePolicyEdit(policy: Policy | null, start: Version<Draft>): Edit<Draft> {
  const text = useText()
  const go = useGo()
  return useEdit<Draft, Policy>({
    key: ['policy', policy?.id ?? 'new', policy ? '' : start.value.source_value].filter(Boolean).join('.'),
    version: start,
    save: (value, etag) => {
      const body = value as PolicyInput
      return policy
        ? call(
            client.PUT('/routing/policies/{id}', {
              params: { path: { id: policy.id }, header: { 'If-Match': etag ?? '' } },
              body,
            }),
          )
        : call(client.POST('/routing/policies', { body }))
    },
    read: async () => {
      const now = await get('/routing/policies/{id}', { path: { id: policy?.id ?? '' } })
      return { value: inputOf(now.data), etag: now.etag }
    },
    said: (saved) => text.policies.savedSay(saved.name),
    onSaved: (saved) => {
      if (!policy) go(`/policies/${saved.id}`)
    },
  })
}

interface FormProps {
  policy: Policy | null
  edit: Edit<Draft>
  errorOf: (path: string) => string | undefined
}

/** The draft as a form or as JSON. */
function EditorForm({ policy, edit, errorOf }: FormProps) {
  const text = useText()
  const [search, setSearch] = useSearchParams()
  const form = useRef<HTMLFormElement>(null)
  const { draft } = edit
  const json = search.as === 'json'
  useSaveKey(form)
  return (
    <form
      ref={form}
      className="sec policyform"
      onSubmit={(event) => {
        event.preventDefault()
        edit.submit()
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
        {draft.dirty ? <p>{text.common.draftKept}</p> : null}
      </div>
      <Failure error={edit.error} />
      {json ? (
        <PolicyJson value={draft.value} onChange={draft.replace} />
      ) : (
        <PolicyForm draft={draft} errorOf={errorOf} />
      )}
      <div className="btns formend">
        <Button
          kind="primary"
          submit
          needs="operator"
          busy={edit.busy}
          disabled={policy !== null && !draft.dirty}
        >
          {text.policies.saveNotActive}
        </Button>
        {draft.dirty && policy ? (
          <Button kind="ghost" onClick={edit.forget}>
            {text.common.discardDraft}
          </Button>
        ) : null}
        <LinkButton kind="ghost" to="/policies">
          {text.policies.backToOrder}
        </LinkButton>
      </div>
    </form>
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
      : text.policies.failSentence[fail]
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
