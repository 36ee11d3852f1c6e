import * as z from 'zod';
import { AgentId, TroupeError } from './troupe.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const HEX = /^[0-9a-f]{64}$/;
const NPUB = /^npub1[02-9ac-hj-np-z]{58}$/;

const RelayUrl = z
  .string()
  .max(500)
  .refine((text) => /^wss?:\/\//.test(text) && URL.canParse(text), 'a relay is a wss:// URL')
  .transform(normaliseUrl);

const Relay = z.union(
  [
    RelayUrl.transform((url) => ({ url, read: true, write: true })),
    z.strictObject({ url: RelayUrl, read: z.boolean().default(true), write: z.boolean().default(true) }),
  ],
  { error: 'a relay is a wss:// URL, or {url, read, write} with one' },
);

const Limits = z.strictObject({
  /** Longer events are refused. Default 128 KiB. */
  maxEventBytes: z.int().min(1_024).max(1_048_576).default(131_072),
  /** Limit for all relays together, shared evenly. A verification takes 0.5 ms, or 2 ms without WebAssembly. Default 100. */
  verificationsPerSecond: z.number().positive().max(10_000).default(100),
  /** Events of one author through one relay. The burst is ten times that; up to 1,000 further ones wait. Default 5. */
  perAuthorPerSecond: z.number().positive().max(10_000).default(5),
  /**
   * Answers of one author to our agents in one conversation, each less than a minute after the previous one. Further answers
   * wake no agent, because two machines would answer each other forever. Default 50.
   */
  answersInARow: z.int().min(1).max(1_000_000).default(50),
});

/** `nostr` in an agents file: the relays of a troupe, and the people who may wake its agents. */
export const NostrSettings = z
  .strictObject({
    /** URLs, or `{url, read, write}` for one direction only; at most 16. `ws://` only on this machine, or with `insecure`. */
    relays: z.array(Relay).min(1).max(16),
    /** Accepted kinds of events: notes, threads and comments. Default 1, 11, 1111. */
    kinds: z.array(z.int().min(0).max(65_535)).min(1).max(20).default([1, 11, 1_111]),
    /**
     * Events of authors who are not in `people`. `ignore`: dropped. `store`: stored, but they wake no agent until a person
     * passes them on. `dispatch`: they wake agents. Default `store`.
     */
    strangers: z.enum(['ignore', 'store', 'dispatch']).default('store'),
    /** People who may wake agents: 64 hex digits or `npub1…`. Default: none. */
    people: z
      .array(
        z.string().refine((text) => HEX.test(text) || NPUB.test(text), 'a person is a pubkey or an npub'),
      )
      .max(10_000)
      .default([]),
    /** Those of `people` whose events may name a session of Claude Code for an agent (tag `claude-session`). Default: none. */
    operators: z
      .array(
        z.string().refine((text) => HEX.test(text) || NPUB.test(text), 'a person is a pubkey or an npub'),
      )
      .max(1_000)
      .default([]),
    /** Prefix of conversation ids, before the id of the thread's first event. Default `nostr:`. */
    conversationPrefix: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,39}$/)
      .default('nostr:'),
    /** After a pause, events are requested from this long before the last one, ms, because some arrive late. Default 600,000. */
    overlapMs: z.int().min(0).max(604_800_000).default(600_000),
    /** Allows relays without TLS on other machines. Default false. */
    insecure: z.boolean().default(false),
    limits: Limits.prefault({}),
    /** Sources of agents' keys, by agent: `'stored'`, `{env: NAME}`, or a remote signer: `{bunkerEnv: NAME}`. Default `'stored'`. */
    keys: z
      .record(
        AgentId,
        z.union(
          [
            z.literal('stored'),
            z.strictObject({ env: z.string().min(1) }),
            z.strictObject({ bunkerEnv: z.string().min(1) }),
          ],
          {
            error:
              'must be "stored", {env: NAME} with the key in that variable, or {bunkerEnv: NAME} with the URL of a remote signer',
          },
        ),
      )
      .default({}),
  })
  .superRefine(({ relays, insecure }, context) => {
    for (const [index, { url }] of relays.entries()) {
      const path = ['relays', index];
      if (!insecure && url.startsWith('ws://') && !LOOPBACK.test(new URL(url).hostname)) {
        const message = `${shownRelay(url)} is not encrypted: use wss://, or set insecure`;
        context.addIssue({ code: 'custom', path, message });
      }
      if (relays.findIndex((other) => other.url === url) !== index) {
        context.addIssue({ code: 'custom', path, message: `${shownRelay(url)} is listed twice` });
      }
    }
  });
export type NostrSettings = z.infer<typeof NostrSettings>;
export type NostrInput = z.input<typeof NostrSettings>;

/** Normalises a relay's URL and drops the slash of an empty path. Keys of entries and claims contain its hash. */
function normaliseUrl(text: string): string {
  const url = URL.parse(text);
  if (!url) return text;
  return url.pathname === '/' && url.search === '' && url.hash === '' ? url.href.slice(0, -1) : url.href;
}

/** Throws `config_invalid`, which lists all problems. */
export function parseSettings(input: unknown): NostrSettings {
  const parsed = NostrSettings.safeParse(input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${pathText(path)}: ${message}`);
  const message = `nostr has ${problems.length} problem(s):\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', message, { problems });
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (place, part) => (typeof part === 'number' ? `${place}[${part}]` : `${place}.${String(part)}`),
    'nostr',
  );
}

/** A relay's URL for people and logs, without user, password and query, which may be secrets. */
export function shownRelay(url: string): string {
  if (!URL.canParse(url)) return 'the given text';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
