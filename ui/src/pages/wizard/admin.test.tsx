import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { session } from '@/api/session'
import { CallerProvider } from '@/session/caller'
import { AdminStep } from './admin'

const PASSWORD = 'a long password'

interface Sent {
  method: string
  path: string
  body: unknown
}

/** Answers like a gateway without an account. */
function gateway(status: Record<string, unknown>, answers: Record<string, [number, unknown]> = {}) {
  const sent: Sent[] = []
  vi.stubGlobal('fetch', async (request: Request) => {
    const path = new URL(request.url).pathname.replace('/api/v1', '')
    const text = request.method === 'GET' ? '' : await request.clone().text()
    if (request.method !== 'GET')
      sent.push({ method: request.method, path, body: text ? (JSON.parse(text) as unknown) : null })
    const [code, body] = answers[`${request.method} ${path}`] ?? [
      200,
      { data: path === '/auth/status' ? status : {} },
    ]
    return new Response(JSON.stringify(body), {
      status: code,
      headers: { 'Content-Type': 'application/json' },
    })
  })
  return sent
}

const NEW = {
  enabled: false,
  configured: false,
  setup_required: true,
  setup_code_required: false,
  methods: [],
  user: null,
  role: 'admin',
  auth: 'open',
}

function show() {
  const finish = vi.fn()
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  render(
    <QueryClientProvider client={queries}>
      <CallerProvider>
        <AdminStep
          progress={{ step: 'admin', done: {}, skipped: [] }}
          finish={finish}
          back={() => undefined}
          skip={() => undefined}
        />
      </CallerProvider>
    </QueryClientProvider>,
  )
  return finish
}

async function fill() {
  fireEvent.change(await screen.findByLabelText('User name'), { target: { value: 'mara' } })
  fireEvent.change(screen.getByLabelText('Password'), { target: { value: PASSWORD } })
}

describe('first account', () => {
  beforeEach(() => {
    session.csrf = null
  })
  afterEach(() => {
    cleanup()
    vi.unstubAllGlobals()
  })

  it('is made, and sign-in is turned on for the next restart', async () => {
    const sent = gateway(NEW, { 'POST /auth/setup': [201, { data: { username: 'mara' } }] })
    const finish = show()
    await fill()
    expect(screen.getByText(/Sign-in is not enforced yet/)).toBeDefined()
    fireEvent.click(screen.getByRole('button', { name: 'Create the admin' }))
    await waitFor(() => expect(finish).toHaveBeenCalledWith('mara'))
    expect(sent).toEqual([
      { method: 'POST', path: '/auth/setup', body: { username: 'mara', password: PASSWORD } },
      { method: 'PUT', path: '/settings/auth.enabled', body: { value: true } },
    ])
  })

  it('needs the setup code from elsewhere, and signs in', async () => {
    const sent = gateway(
      { ...NEW, enabled: true, setup_code_required: true, role: null, auth: null },
      {
        'POST /auth/setup': [201, { data: { username: 'mara' } }],
        'POST /auth/login': [200, { data: { user: {}, expires_at: '', csrf_token: 'token' } }],
      },
    )
    const finish = show()
    await fill()
    fireEvent.change(screen.getByLabelText('Setup code'), { target: { value: '1234' } })
    fireEvent.click(screen.getByRole('button', { name: 'Create the admin' }))
    await waitFor(() => expect(finish).toHaveBeenCalledWith('mara'))
    expect(sent[0]?.body).toEqual({ username: 'mara', password: PASSWORD, setup_code: '1234' })
    expect(sent[1]?.path).toBe('/auth/login')
    expect(sent).toHaveLength(2)
  })

  it('shows what the gateway finds wrong beside the field', async () => {
    gateway(NEW, {
      'POST /auth/setup': [
        422,
        {
          error: {
            code: 'validation_failed',
            message: 'One field is not valid.',
            details: { fields: [{ path: 'password', message: 'Too common.' }], request_id: 'r' },
          },
        },
      ],
    })
    const finish = show()
    await fill()
    fireEvent.click(screen.getByRole('button', { name: 'Create the admin' }))
    await waitFor(() => expect(screen.getAllByText(/Too common/).length).toBeGreaterThan(0))
    expect(screen.getByLabelText('Password').getAttribute('aria-invalid')).toBe('true')
    expect(finish).not.toHaveBeenCalled()
  })

  it('is not asked for again', async () => {
    const sent = gateway({ ...NEW, setup_required: false, configured: true, user: 'mara' })
    const finish = show()
    await screen.findByText('account exists')
    const next = screen.getByRole<HTMLButtonElement>('button', { name: 'Continue' })
    await waitFor(() => expect(next.disabled).toBe(false))
    fireEvent.click(next)
    expect(finish).toHaveBeenCalledWith('mara')
    expect(sent).toEqual([])
  })
})
