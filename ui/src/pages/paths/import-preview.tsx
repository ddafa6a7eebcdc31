// What a file contains, without its keys.

import { Facts } from '@/components/facts'
import { Icon } from '@/components/icons'
import { useText } from '@/text'
import type { ParsedFile, Problem } from './import-file'

export function Preview({ file }: { file: ParsedFile }) {
  const text = useText()
  const words = text.paths.import
  const problem = (each: Problem) =>
    each.code === 'not_inline' ? words.notInline(each.directive) : (words.problem[each.code] ?? each.code)
  const servers = file.kind === 'wireguard' ? file.peers.map((peer) => peer.endpoint ?? '-') : file.remotes
  const allowed = file.peers.flatMap((peer) => peer.allowedIps)
  const preshared = file.peers.some((peer) => peer.hasPresharedKey)
  return (
    <div className="cols cols--2">
      <div className="sec">
        {file.problems.length > 0 ? (
          <div className="err" role="status">
            <p className="strong">{words.problems}</p>
            {file.problems.map((each) => (
              <p key={problem(each)}>{problem(each)}</p>
            ))}
          </div>
        ) : null}
        <Facts
          facts={[
            [words.server, servers.join(', ') || null],
            file.kind === 'wireguard' && [words.address, file.addresses.join(', ') || null],
            file.kind === 'wireguard' && [words.allowed, allowed.join(', ') || null],
            file.dns.length > 0 && [words.dns, file.dns.join(', ')],
            [words.keys, file.hasPrivateKey ? words.keysSet(preshared) : null],
            file.cipher !== null && [words.cipher, file.cipher],
            file.mtu !== null && [words.mtu, String(file.mtu)],
          ]}
        />
        {file.ignored.length > 0 ? (
          <p className="mid">
            <Icon name="filter" /> {words.ignored}: <code>{file.ignored.join(', ')}</code>
            <br />
            <span className="dim sm">{words.ignoredHint}</span>
          </p>
        ) : null}
      </div>
      <div className="sec">
        <pre className="file">{file.masked}</pre>
      </div>
    </div>
  )
}
