import type { Text } from '..'
import { editor, lists } from './dns-lists'
import { privacy } from './dns-privacy'
import { upstreams } from './dns-upstreams'
import { zones } from './dns-zones'

/** Tausender getrennt: `18 204`. */
const group = (n: number) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ' ')
const count = (n: number, one: string, many: string) => (n === 1 ? `1 ${one}` : `${group(n)} ${many}`)

export const dns: Text['dns'] = {
  label: 'DNS & Privatsphäre',
  editor,
  lists,
  zones,
  upstreams,
  privacy,
  log: {
    label: 'Anfragen',
    question: 'Warum wurde diese Seite gesperrt, und wer hat nach ihr gefragt?',
    made: (since, until, clients, queries) =>
      `${until === null ? `Seit ${since}` : `Von ${since} bis ${until}`} ${clients === 1 ? 'stellte 1 Client' : `stellten ${group(clients)} Clients`} ${count(queries, 'Anfrage', 'Anfragen')}.`,
    noneBlocked: 'Keine wurde gesperrt.',
    blockedCount: (blocked) => (blocked === 1 ? '1 wurde gesperrt' : `${group(blocked)} wurden gesperrt`),
    by: (reason, name, n) => {
      const words: Record<string, string> = {
        rule: name === null ? 'durch eine gelöschte Regel' : `durch Regel ${name}`,
        blocklist: name === null ? 'durch einen gelöschten Eintrag der Sperrliste' : `durch ${name}`,
        threat_feed: name === null ? 'durch eine gelöschte Bedrohungsliste' : `durch ${name}`,
        canary: n === 1 ? 'als Canary-Name' : 'als Canary-Namen',
        privacy: 'durch einen Privatsphäre-Schalter',
        rewrite: 'durch eine Umschreibung',
        none: 'ohne Treffer',
      }
      return `${group(n)} ${words[reason] ?? `durch ${reason}`}`
    },
    byOthers: (n) => `${group(n)} durch andere`,
    live: 'Live',
    frozen: 'Angehalten',
    rangeEnds: 'Der gewählte Zeitraum hat ein Ende, darin erscheint nichts Neues.',
    download: 'Die gezeigten Einträge herunterladen',
    newRows: (n, more) => (more ? `Mehr als ${group(n)} neue` : `${group(n)} neue`),
    none: 'Das Protokoll enthält keine Anfragen.',
    unread: 'Das Protokoll konnte nicht gelesen werden.',
    empty:
      'Hier erscheinen die Anfragen der Geräte, die dieses Gateway für DNS benutzen. Geräte, deren Privatsphäre-Klasse kein Protokoll führt, erscheinen nicht.',
    noMatch: (since) =>
      since === null ? 'Keine Anfrage im Protokoll passt.' : `Seit ${since} passt keine Anfrage.`,
    older: 'Ältere',
    searched: (time, matches) =>
      `${time === null ? '' : `Durchsucht bis ${time}, `}${matches === 0 ? 'kein Treffer' : count(matches, 'Treffer', 'Treffer')}.`,
    searchedEarly:
      'Die Suche endete dort, weil sie sehr viele Einträge gelesen hatte; „Ältere“ setzt sie fort.',
    linked: 'Die Anfrage, die dieser Link nennt; die Liste darunter reicht nicht bis zu ihr.',
    linkedGone: 'Die Anfrage, die dieser Link nennt, steht nicht mehr im Protokoll.',
    nothingOlder: 'Das Protokoll enthält nichts Älteres.',
    wholeRange: 'Das ist der ganze Zeitraum.',
    notRead: 'Älteres wurde noch nicht gelesen.',
    most: (n) => `Die Seite hält ${group(n)} Anfragen im Speicher. Ältere ersetzen die neuesten.`,
    lost: (n) =>
      `${n === 1 ? '1 Eintrag ging' : `${group(n)} Einträge gingen`} seit dem Start verloren, weil sie schneller kamen, als sie geschrieben werden konnten.`,
    chart: (from, to, queries, blocked, most) =>
      `Anfragen von ${from} bis ${to}: ${group(queries)}, davon ${group(blocked)} gesperrt, höchstens ${group(most)} je Balken. Durch Ziehen wird ein Zeitraum gewählt; die Tabelle und der Zeitfilter tun dasselbe mit der Tastatur.`,
    bars: 'Anfragen im Lauf der Zeit',
    allQueries: 'Alle Anfragen',
    inList: 'In der Liste',
    brushHint: 'alle Anfragen; hinterlegt: in der Liste; ziehen wählt einen Zeitraum',
    brushNarrowed: 'blass: alle Anfragen; dunkel: die in der Liste; ziehen wählt einen Zeitraum',
    domain: 'Domain',
    domainHint: 'Domain oder Teil davon, ! lässt sie weg',
    time: 'Zeit',
    filters: {
      domain: 'Domain',
      client: 'Client',
      status: 'Ergebnis',
      list: 'Liste oder Regel',
      type: 'Typ',
      upstream: 'Upstream',
      egress: 'Weg',
      cached: 'Aus dem Cache',
      slower: 'Langsamer als',
      from: 'Von',
      to: 'Bis',
    },
    not: (filter) => `Nicht ${filter}`,
    except: 'diese weglassen',
    others: (n) => (n === 1 ? '1 weitere' : `${group(n)} weitere`),
    valueHints: {
      client: 'Adresse oder MAC-Adresse',
      type: 'Typ',
      upstream: 'Teil seiner Adresse',
      slower: 'Millisekunden',
    },
    removeFilter: (name) => `Filter entfernen: ${name}`,
    clear: 'Filter entfernen',
    range: (from, to) => (from === null ? `bis ${to ?? ''}` : `${from} bis ${to ?? 'jetzt'}`),
    last: (minutes) =>
      minutes < 60
        ? `letzte ${minutes} min`
        : minutes === 1440
          ? 'letzter Tag'
          : minutes === 60
            ? 'letzte Stunde'
            : `letzte ${minutes / 60} h`,
    from: 'Von',
    to: 'bis',
    set: 'Anwenden',
    columns: {
      time: 'Zeit',
      client: 'Client',
      question: 'Frage',
      type: 'Typ',
      verdict: 'Ergebnis',
      because: 'Grund',
      answered: 'Antwort von',
      took: 'Dauer',
    },
    leftBy: {
      blocked: (cause) => (cause === '' ? 'Gesperrt' : `Gesperrt: ${cause}`),
      down: (hops, several) => `${hops} ${several ? 'sind' : 'ist'} ausgefallen`,
      direct: 'Erlaubt, direkt',
    },
    statuses: {
      allowed: 'Erlaubt',
      blocked: 'Gesperrt',
      cached: 'Aus dem Cache',
      rewritten: 'Umgeschrieben',
      forwarded: 'Weitergeleitet',
      refused: 'Abgelehnt',
      error: 'Fehler',
    },
    reasonOf: (reason, name) => {
      const words: Record<string, string> = {
        rule: 'Regel',
        allowlist: 'Erlaubnisliste',
        blocklist: 'Sperrliste',
        threat_feed: 'Bedrohungsliste',
        rewrite: 'Umschreibung',
        canary: 'Canary-Name',
        privacy: 'Privatsphäre-Schalter',
      }
      return `${words[reason] ?? reason} ${name}`.trim()
    },
    noRule: 'keine Regel',
    unknownClient: 'unbekannt',
    noClient: 'nicht protokolliert',
    via: (egress) => (egress === 'auto' ? 'über die Standardroute' : `über ${egress}`),
    defaultRoute: 'Standardroute',
    fromCache: 'Cache',
    notAsked: 'nicht gefragt',
    local: 'lokal',
    noAnswer: 'keine Antwort',
    slow: 'langsam',
    actionsFor: (name) => `Aktionen für ${name}`,
    thisName: (verb) => (verb === 'allow' ? 'Diesen Namen erlauben' : 'Diesen Namen sperren'),
    domainAndBelow: (verb, domain) =>
      verb === 'allow' ? `${domain} und alles darunter erlauben` : `${domain} und alles darunter sperren`,
    onlyDevice: (verb, device) =>
      verb === 'allow' ? `Nur für ${device} erlauben` : `Nur für ${device} sperren`,
    quick: (verb) => (verb === 'allow' ? 'Erlauben' : 'Sperren'),
    quickFor: (verb, name) => `${name} ${verb === 'allow' ? 'erlauben' : 'sperren'}`,
    done: (verb, name, below) =>
      `${name}${below ? ' und alle Namen darunter sind' : ' ist'} jetzt ${verb === 'allow' ? 'erlaubt' : 'gesperrt'}.`,
    why: 'Warum',
    direct: {
      button: 'Direkt für 10 min',
      sentence: (device, name, minutes) =>
        `${device} erreicht ${name} für ${minutes} min über die Standardroute, an seiner Richtlinie vorbei. Server sehen dann die Adresse des Uplinks.`,
      stillFiltered: 'Der Filter sperrt den Namen weiterhin; erlauben Sie ihn auch dort.',
      reason: 'Begründung',
      done: (name) => `Die Ausnahme für ${name} ist aktiv.`,
    },
    facts: {
      rule: 'Regel',
      list: 'Liste',
      through: 'Name, der passte',
      upstream: 'Upstream',
      egress: 'Weg',
      rcode: 'Antwortcode',
      ede: 'Erweiterter Fehler',
      dnssec: 'DNSSEC',
      proto: 'Übertragung',
      took: 'Dauer',
      time: 'Zeit',
      id: 'Eintrag',
      answers: (n) => (n === 0 ? 'Keine Einträge in der Antwort' : n === 1 ? 'Antwort' : `${n} Antworten`),
    },
    validated: 'geprüft',
    notValidated: 'nicht geprüft',
    protocols: { plain: 'unverschlüsselt', dot: 'DNS über TLS', doh: 'DNS über HTTPS' },
    sameName: 'Alle Anfragen nach diesem Namen',
    sameClient: 'Alle Anfragen dieses Clients',
    sameList: 'Alles, was diese Regel oder Liste traf',
    sameEgress: (egress) =>
      `Alles, was ${egress === 'auto' ? 'über die Standardroute' : `über ${egress}`} ging`,
  },
}
