// A tunnel of a file: the daemon reads the file for the preview, and creates the tunnel when it is imported.

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ApiError, call, client } from '@/api/client'
import { useGet } from '@/api/query'
import { freeName, kindOf, nameFromFile, type FileKind } from './file'

interface Login {
  username: string
  password: string
  key_passphrase: string
}

const NO_LOGIN: Login = { username: '', password: '', key_passphrase: '' }

/** Time without a key press after which a new name is checked, in milliseconds. */
const PAUSE = 400

export function useTunnelImport() {
  const tunnels = useGet('/tunnels').data?.data ?? []
  const [content, setContent] = useState('')
  const [name, setName] = useState('')
  const [login, setLogin] = useState(NO_LOGIN)
  const kind = kindOf(content)
  const checked = useSettled(name)
  const preview = useQuery({
    queryKey: ['preview of a tunnel', kind, content, checked],
    queryFn: () => send(kind ?? 'wireguard', { name: checked, config: content }, true),
    enabled: kind !== null,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    // The file has keys, so it is forgotten at once.
    gcTime: 0,
    retry: false,
    meta: { costly: true },
  })
  const problem = preview.error instanceof ApiError ? preview.error : null
  // The file is read all the same if only its name is not free.
  const onlyName =
    problem !== null &&
    (problem.details.field === 'name' ||
      (problem.fields.length > 0 && problem.fields.every((each) => each.path === 'name')))
  const [last, setLast] = useState(preview.data)
  if (preview.data && preview.data !== last) setLast(preview.data)
  return {
    content,
    kind,
    name,
    setName,
    login,
    setLogin,
    /** The tunnel as it would be, with warnings. */
    read: preview.data ?? (onlyName ? last : undefined),
    error: preview.error,
    /** Error of the preview, if the daemon answered one. */
    problem,
    choose: (text: string, file: string) => {
      const known = nameFromFile(file) || (kindOf(text) ?? '')
      setContent(text)
      setName(
        freeName(
          known,
          tunnels.map((tunnel) => tunnel.name),
        ),
      )
    },
    clear: () => {
      setContent('')
      setLogin(NO_LOGIN)
    },
    save: () =>
      send(
        kind ?? 'wireguard',
        {
          name,
          config: content,
          username: login.username || null,
          password: login.password || null,
          key_passphrase: login.key_passphrase || null,
        },
        false,
      ),
  }
}

export type TunnelImport = ReturnType<typeof useTunnelImport>

interface Input extends Partial<Record<keyof Login, string | null>> {
  name: string
  config: string
}

function send(kind: FileKind, { name, config, ...login }: Input, dryRun: boolean) {
  const params = { query: dryRun ? { dry_run: true } : {} }
  return kind === 'wireguard'
    ? call(client.POST('/tunnels/import-wireguard', { params, body: { name, config } }))
    : call(client.POST('/tunnels/upload-ovpn', { params, body: { name, config, ...login } }))
}

/** A value after it has not changed for a while. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), PAUSE)
    return () => window.clearTimeout(timer)
  }, [value])
  // The first name needs no pause.
  return settled === '' ? value : settled
}
