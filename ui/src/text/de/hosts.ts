import type { Text } from '..'
import { formatNumber } from '../format'

const many = (count: number, one: string, more: string) =>
  count === 1 ? `1 ${one}` : `${formatNumber(count)} ${more}`

export const hosts: Text['hosts'] = {
  tab: 'Im Netz',
  question: 'Welche Hosts sind im Netz, und welche davon sind kein Gerät?',
  answer: (all, strangers, online) =>
    `${many(all, 'Host wurde', 'Hosts wurden')} gesehen, davon ${formatNumber(online)} in den letzten Minuten. ${
      strangers === 0 ? 'Jeder ist ein Gerät.' : `${many(strangers, 'ist kein Gerät', 'sind keine Geräte')}.`
    }`,
  answerNone: 'Im Netz wurde noch kein Host gesehen.',
  atLeast: (shown, all) => `Die ${formatNumber(shown)} zuletzt gesehenen von ${formatNumber(all)} Hosts.`,
  find: 'Name, Adresse oder Hersteller',
  label: 'Hosts im Netz',
  shown: (shown, all) => `${formatNumber(shown)} von ${formatNumber(all)} Hosts werden gezeigt.`,
  onlyStrangers: 'Nur Hosts, die kein Gerät sind',
  nothing: 'Zu diesen Filtern passt kein Host.',
  empty:
    'Noch wurde kein Host gesehen. Ein Host erscheint, sobald er etwas sendet oder eine Adresse vom DHCP-Server hat.',
  columns: {
    host: 'Host',
    address: 'Adresse',
    vendor: 'Hersteller',
    seen: 'Zuletzt gesehen',
    path: 'Weg ins Internet',
    rate: 'Überträgt jetzt',
    device: 'Gerät',
    actions: 'Aktionen',
  },
  online: 'online',
  unconfirmed: 'hat nie geantwortet',
  unconfirmedHint:
    'Der Host hat dem Gateway noch nicht geantwortet, seine Adresse kann also gefälscht sein. Keine Zahl des Urteils enthält ihn.',
  randomized: 'zufällige MAC',
  randomizedHint:
    'Diese Adresse hat sich eine Software ausgedacht, wie Telefone es tun. Sie kann sich ändern; der Host gilt dann als neuer.',
  unknown: 'unbekannt',
  noAddress: 'keine Adresse bekannt',
  notForwarded: 'nicht weitergeleitet',
  notForwardedHint: 'Von dieser Schnittstelle leitet das Gateway nichts ins Internet weiter.',
  treatments: {
    through_policy: 'durch eine Richtlinie',
    blocked: 'blockiert',
    direct_by_exception: 'direkt, durch eine Ausnahme',
    failed_open: 'direkt, Richtlinie fällt offen aus',
    no_policy: 'direkt, ohne Richtlinie',
  },
  firstSeen: 'Zuerst gesehen',
  lastSeen: 'Zuletzt gesehen',
  mac: 'MAC-Adresse',
  addresses: 'Adressen',
  names: 'Namen',
  nameFrom: { dns: 'eigene Zone oder Reservierung', dhcp: 'DHCP', mdns: 'Multicast-DNS', ssdp: 'SSDP' },
  namesHint: 'Ein Host kann sich jeden Namen geben, außer denen eigener Zonen und Reservierungen.',
  vendor: 'Hersteller',
  vendorUnknown: 'unbekannt: Die Adresse ist zufällig oder nicht vergeben',
  vendorClass: 'Herstellerklasse (DHCP)',
  interface: 'Schnittstelle',
  answers: 'Antwortet dem Gateway',
  state: 'Jetzt',
  offline: 'seit mehr als vier Minuten nicht gesehen',
  way: 'Weg ins Internet',
  rate: 'Überträgt jetzt',
  receives: (rate) => `empfängt ${rate}`,
  sends: (rate) => `sendet ${rate}`,
  rateHint:
    'Mittel der letzten fünf Sekunden, an der Schnittstelle des Gateways. Bei sehr viel Verkehr ist es eine Schätzung.',
  rateUnknown:
    'Nicht gemessen: Der Host ist nicht da, hat nie geantwortet, oder die Netzwerkkarte leitet selbst weiter (XDP).',
  noDevice: 'kein Gerät',
  hostQuestion: (name) => `Wer ist ${name}?`,
  hostIsDevice: 'Das ist ein Gerät: ',
  hostIsNone:
    'Dieser Host ist noch kein Gerät. Für ihn gelten nur Regeln für sein Netz und für Hosts, die kein Gerät sind.',
  gone: 'Dieser Host steht nicht mehr in der Liste. Er wurde vergessen oder lange nicht gesehen.',
  toList: 'Hosts im Netz',
  ofDevice: 'So sieht es das Netz',
  ofDeviceHint: 'Hosts mit einer MAC-Adresse dieses Geräts.',
  ofDeviceNone: 'Ein Host mit einer MAC-Adresse dieses Geräts wurde nicht gesehen.',
  ofDeviceNoMac: 'Dieses Gerät hat keine MAC-Adresse, also ist nicht bekannt, welcher Host es ist.',
  inbox: {
    title: 'Hosts ohne Entscheidung',
    titleOf: (count) =>
      count === 1 ? '1 Host ohne Entscheidung' : `${formatNumber(count)} Hosts ohne Entscheidung`,
    all: 'Alle Hosts',
    hint: {
      direct: 'Sie sind kein Gerät. Wo keine Richtlinie für ihr Netz gilt, gehen sie direkt hinaus.',
      blocked: 'Sie sind kein Gerät und erreichen das Internet nicht.',
      quarantine: 'Sie sind kein Gerät und erreichen nur das Gateway.',
    },
    empty: 'Jeder Host, der dem Gateway geantwortet hat, ist ein Gerät.',
    emptyUnknown: 'Noch hat kein Host dem Gateway geantwortet, also ist nicht bekannt, wer da ist.',
    more: (count) => (count === 1 ? '1 weiterer Host' : `${formatNumber(count)} weitere Hosts`),
    hidden: (count) =>
      count === 1
        ? '1 Host ist in diesem Browser ausgeblendet.'
        : `${formatNumber(count)} Hosts sind in diesem Browser ausgeblendet.`,
    showHidden: 'Einblenden',
    allHidden: 'Alle anderen sind Geräte.',
  },
  adopt: 'Als Gerät hinzufügen',
  adoptNamed: 'Mit einem Namen hinzufügen',
  quarantine: 'In Quarantäne',
  block: 'Blockieren',
  hide: 'In diesem Browser ausblenden',
  unhide: 'Wieder in der Übersicht zeigen',
  forget: 'Vergessen',
  actionsFor: (name) => `Aktionen für ${name}`,
  dialog: {
    adopt: (name) => `${name} als Gerät hinzufügen`,
    quarantine: (name) => `${name} in Quarantäne nehmen`,
    block: (name) => `${name} blockieren`,
    means: {
      adopt:
        'Der Host wird ein Gerät mit diesem Namen. Richtlinien, Gruppen und Ausnahmen können dann für ihn gelten.',
      quarantine:
        'Der Host wird ein Gerät in Quarantäne: Er erreicht das Gateway, aber weder das Internet noch andere Netze. Hosts seines eigenen Netzes erreichen ihn weiterhin.',
      block:
        'Der Host wird ein Gerät, das blockiert ist: Das Gateway leitet nichts von ihm weiter. Wenn Sie selbst daran sitzen, verlieren Sie das Internet.',
    },
    name: 'Name',
    trustClass: 'Vertrauensklasse',
    standard: 'keine eigene',
  },
  adopted: (name) => `${name} ist jetzt ein Gerät.`,
  quarantined: (name) => `${name} ist jetzt in Quarantäne.`,
  blockedNow: (name) => `${name} ist jetzt blockiert.`,
  forgotten: (name) => `${name} ist vergessen. Ist der Host noch da, erscheint er wieder als neu.`,
  stranger: {
    label: 'Hosts, die kein Gerät sind',
    options: { direct: 'Direkt', blocked: 'Blockiert', quarantine: 'Quarantäne', policy: 'Nach Richtlinie' },
    means: {
      direct:
        'Für sie gelten Richtlinien für ihr Netz und für allen Verkehr. Wo es keine gibt, gehen sie direkt hinaus, ohne Tunnel.',
      blocked:
        'Sie erreichen das Internet nicht, gleich welche Richtlinien es gibt, und Namen des Internets werden für sie nicht aufgelöst. Sie erreichen das Gateway und das LAN.',
      quarantine:
        'Sie erreichen weder das Internet noch andere Netze, nur das Gateway. Namen des Internets werden für sie nicht aufgelöst.',
      policy:
        'Eine Richtlinie für allen Verkehr oder für ihre Schnittstelle gilt für sie wie für jeden Host. Wo es keine gibt, gehen sie direkt hinaus.',
    },
    write: 'Richtlinie für allen Verkehr schreiben',
    written: 'Es ist diese: ',
    saved: 'Das gilt sofort.',
    unknown: 'Was für sie gilt, ist nicht bekannt: Die Einstellung ist nicht zu lesen.',
  },
  pick: {
    label: 'Oder ein Host, der noch kein Gerät ist',
    hint: 'Er wird ein Gerät und ist gewählt.',
    none: 'wählen',
    name: 'Name des Geräts',
    mac: (name, address) => `${name}, ${address}`,
    offered: 'Hosts im Netz',
    macHint:
      'Wählen Sie einen Host nach Name, Adresse oder Hersteller aus der Liste, oder geben Sie eine MAC-Adresse ein.',
    group: (name) => `${name} (noch kein Gerät)`,
  },
  share: {
    chip: (covered, total) => `${covered} von ${total} Hosts`,
    show: (open) =>
      open === 1
        ? 'Den Host zeigen, der direkt hinausgeht'
        : `Die ${open} Hosts zeigen, die direkt hinausgehen`,
    bar: (covered, total) => `Abgedeckt: ${covered} von ${total} Hosts`,
  },
  first: {
    title: 'Namen und Hosts',
    hint: 'DNS, Filter, unbekannte Hosts',
    lead: 'Wer Namen auflöst, was gefiltert wird, und was aus Hosts ohne Namen wird.',
    names: 'Wer Namen auflöst',
    namesHint: 'Ohne Resolver kann kein Gerät im LAN eine Seite bei ihrem Namen öffnen.',
    keep: (servers) => `Behalten, was gesetzt ist: ${servers}`,
    keepNone: 'Vorerst keiner: Namen des Internets werden nicht aufgelöst',
    preset: (name) => `${name}, verschlüsselt (DNS über TLS)`,
    own: 'Andere Adressen, unverschlüsselt',
    ownAddresses: 'Adressen',
    ownHint:
      'IP-Adressen von Resolvern, durch Kommas getrennt. Ihr Betreiber und jeder auf dem Weg kann die Namen lesen.',
    other: 'Ein anderer Resolver',
    filterings: {
      none: 'filtert nichts',
      malware: 'blockiert bekannte Schadsoftware',
      ads: 'blockiert Werbung und Tracker',
      family: 'blockiert Werbung, Tracker und Seiten für Erwachsene',
    },
    filter: 'Filterliste',
    useList: 'Werbung und Tracker von der ersten Minute an mit einer Liste blockieren',
    useListHint:
      'Das Gateway lädt sie von dieser Adresse und erneuert sie. Namen darauf werden für kein Gerät aufgelöst; das Anfragenprotokoll sagt, welche.',
    list: 'Liste',
    lists: {
      hageziLight: 'HaGeZi Light: Werbung und Tracker, stört selten eine Seite',
      hageziNormal: 'HaGeZi Normal: strenger',
      stevenBlack: 'StevenBlack: eine vereinigte Hosts-Datei',
    },
    listThere: (count) =>
      count === 1 ? '1 Liste ist schon abonniert.' : `${count} Listen sind schon abonniert.`,
    filteringOff: 'Der Filter ist aus; mit der Liste wird er eingeschaltet.',
    strangers: 'Hosts ohne Namen',
    strangersHint:
      'Einen Host mit einem Namen nennt das Gateway Gerät. Die anderen stehen in der Übersicht, wo jeder hinzugefügt werden kann.',
    policyLater:
      'Der letzte Schritt der Einrichtung führt zu ihrem Formular, wenn es einen Weg gibt, den sie nennen kann.',
    policyTitle: 'Hosts ohne Namen',
    policyHint:
      'Über sie soll eine Richtlinie entscheiden. Sie ist noch nicht geschrieben; bis dahin gehen sie direkt hinaus.',
    finishToPolicy: 'Abschließen und die Richtlinie schreiben',
    alsoYou: 'Das gilt auch für den Rechner, an dem Sie sitzen, bis er ein Gerät ist.',
    save: 'Speichern und weiter',
    saved: 'Namen und Hosts sind eingerichtet.',
    summary: (resolver, list, strangers) =>
      `${resolver}, ${list ? 'Filterliste' : 'keine neue Liste'}, unbekannte Hosts: ${strangers}`,
    unchanged: 'unverändert',
  },
}
