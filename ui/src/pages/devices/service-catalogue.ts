// Services that a device can be kept from, and safe search: filter rules of the resolver, by the domains of the services.

import type { Schemas } from '@/api/client'

/** A filter rule of a service. Its comment identifies it among all rules. */
export type ServiceRule = Pick<
  Schemas['DnsFilterRuleInput'],
  'comment' | 'pattern' | 'match' | 'action' | 'answer'
>

export interface Service {
  id: string
  /** A proper name, the same in each language; null if the catalogue of texts has it. */
  name: string | null
  rules: ServiceRule[]
}

function blocked(id: string, name: string, ...domains: string[]): Service {
  const names = domains.map((domain) => domain.replaceAll('.', String.raw`\.`)).join('|')
  const pattern = String.raw`(^|\.)(${names})$`
  return {
    id,
    name,
    rules: [{ comment: `Service: ${name}`, pattern, match: 'regex', action: 'block', answer: null }],
  }
}

/** The makers of these names publish the names that answer with filtered results. */
function rewritten(name: string, answer: string, pattern: string): ServiceRule {
  return { comment: `Safe search: ${name}`, pattern, match: 'regex', action: 'rewrite', answer }
}

export const SAFE_SEARCH: Service[] = [
  {
    id: 'search',
    name: null,
    rules: [
      rewritten(
        'Google',
        'forcesafesearch.google.com',
        String.raw`^(www\.)?google\.(com|[a-z]{2}|com?\.[a-z]{2})$`,
      ),
      rewritten('Bing', 'strict.bing.com', String.raw`^(www\.)?bing\.com$`),
      rewritten('DuckDuckGo', 'safe.duckduckgo.com', String.raw`^((www|start)\.)?duckduckgo\.com$`),
      rewritten('Pixabay', 'safesearch.pixabay.com', String.raw`^(www\.)?pixabay\.com$`),
    ],
  },
  {
    id: 'youtube_restricted',
    name: null,
    rules: [
      rewritten(
        'YouTube',
        'restrict.youtube.com',
        String.raw`^((www|m)\.youtube\.com|(www\.)?youtube-nocookie\.com|(youtubei|youtube)\.googleapis\.com)$`,
      ),
    ],
  },
]

export const SERVICES: Service[] = [
  blocked(
    'youtube',
    'YouTube',
    'youtube.com',
    'youtu.be',
    'youtube-nocookie.com',
    'googlevideo.com',
    'ytimg.com',
    'youtubei.googleapis.com',
    'youtube.googleapis.com',
  ),
  blocked(
    'tiktok',
    'TikTok',
    'tiktok.com',
    'tiktokv.com',
    'tiktokv.us',
    'tiktokcdn.com',
    'tiktokcdn-us.com',
    'tiktokcdn-eu.com',
    'ttwstatic.com',
    'byteoversea.com',
    'ibytedtos.com',
    'musical.ly',
  ),
  blocked('instagram', 'Instagram', 'instagram.com', 'cdninstagram.com', 'instagr.am', 'ig.me'),
  blocked(
    'facebook',
    'Facebook',
    'facebook.com',
    'facebook.net',
    'fbcdn.net',
    'fbsbx.com',
    'fb.com',
    'messenger.com',
  ),
  blocked('snapchat', 'Snapchat', 'snapchat.com', 'snapads.com', 'sc-cdn.net', 'sc-gw.com', 'addlive.io'),
  blocked('whatsapp', 'WhatsApp', 'whatsapp.com', 'whatsapp.net', 'wa.me'),
  blocked(
    'discord',
    'Discord',
    'discord.com',
    'discord.gg',
    'discord.media',
    'discordapp.com',
    'discordapp.net',
    'discordcdn.com',
  ),
  blocked('x', 'X', 'x.com', 'twitter.com', 'twimg.com', 't.co', 'pscp.tv'),
  blocked('reddit', 'Reddit', 'reddit.com', 'redd.it', 'redditmedia.com', 'redditstatic.com'),
  blocked('twitch', 'Twitch', 'twitch.tv', 'ttvnw.net', 'jtvnw.net', 'twitchcdn.net'),
  blocked(
    'netflix',
    'Netflix',
    'netflix.com',
    'netflix.net',
    'nflxext.com',
    'nflximg.net',
    'nflxso.net',
    'nflxvideo.net',
  ),
  blocked('disney', 'Disney+', 'disneyplus.com', 'disney-plus.net', 'dssott.com', 'bamgrid.com'),
  blocked('roblox', 'Roblox', 'roblox.com', 'rbxcdn.com', 'rbx.com'),
  blocked('fortnite', 'Epic Games', 'epicgames.com', 'epicgames.dev', 'fortnite.com'),
  blocked('minecraft', 'Minecraft', 'minecraft.net', 'minecraftservices.com', 'mojang.com'),
  blocked(
    'steam',
    'Steam',
    'steampowered.com',
    'steamcommunity.com',
    'steamcontent.com',
    'steamstatic.com',
    'steamserver.net',
    'steamusercontent.com',
  ),
]
