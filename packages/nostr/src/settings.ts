import * as z from 'zod';
import { AgentId, TroupeError } from './troupe.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const HEX = /^[0-9a-f]{64}$/;
const NPUB = /^npub1[02-9ac-hj-np-z]{58}$/;

const RelayUrl = z
  .string()
  .max(500)
  .refine((text) => /^wss?:\/\//.test(text) && URL.canParse(text), 'a relay is a wss:// URL')
  .transform(oneForm);

const Relay = z.union(
  [
    RelayUrl.transform((url) => ({ url, read: true, write: true })),
    z.strictObject({ url: RelayUrl, read: z.boolean().default(true), write: z.boolean().default(true) }),
  ],
  { error: 'a relay is a wss:// URL, or {url, read, write} with one' },
);

const Limits = z.strictObject({
  /** Longer events are not read. Default 128 KiB. */
  maxEventBytes: z.int().min(1_024).max(1_048_576).default(131_072),
  /** Over all relays, which share them evenly: each costs the process half a millisecond, without WebAssembly two. Default 100. */
  verificationsPerSecond: z.number().positive().max(10_000).default(100),
  /** Of one author through one relay; ten times that may come at once, and what is over waits. Default 5. */
  perAuthorPerSecond: z.number().positive().max(10_000).default(5),
  /**
   * How often somebody may answer our agents in one conversation with less than a minute between two, before their words
   * wake nobody: a machine answers for ever. Default 50.
   */
  answersInARow: z.int().min(1).max(1_000_000).default(50),
});

/** `nostr` in an agents file: which relays a troupe listens and speaks to, and whose words wake its agents. */
export const NostrSettings = z
  .strictObject({
    relays: z.array(Relay).min(1).max(16),
    /** Kinds of events that are let in. Default: notes, threads and comments. */
    kinds: z.array(z.int().min(0).max(65_535)).min(1).max(20).default([1, 11, 1_111]),
    /**
     * What becomes of the words of those who are not among `people`: they are not kept; kept for people to pass on, waking
     * nobody; or they wake agents. Default `store`.
     */
    strangers: z.enum(['ignore', 'store', 'dispatch']).default('store'),
    /** Whose words wake agents: 64 hex digits or `npub1…`. */
    people: z
      .array(
        z.string().refine((text) => HEX.test(text) || NPUB.test(text), 'a person is a pubkey or an npub'),
      )
      .max(10_000)
      .default([]),
    /** Before the id of a thread's first event: the id of its conversation. */
    conversationPrefix: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,39}$/)
      .default('nostr:'),
    /** How far before the last event a relay is asked again after a pause, ms: events arrive late. Default 10 min. */
    overlapMs: z.int().min(0).max(604_800_000).default(600_000),
    /** Relays beyond this machine without TLS. */
    insecure: z.boolean().default(false),
    limits: Limits.prefault({}),
    /** Where the keys of agents are: in the store, in a variable, or with a remote signer whose URL is in a variable. */
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
              'is "stored", or names one variable: {env} with the key or {bunkerEnv} with the URL of a signer',
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
        context.addIssue({ code: 'custom', path, message: `${shownRelay(url)} is named twice` });
      }
    }
  });
export type NostrSettings = z.infer<typeof NostrSettings>;
export type NostrInput = z.input<typeof NostrSettings>;

/** One relay is one text, however it is written: notes and claims are named after it. The slash of no path is left out. */
function oneForm(text: string): string {
  const url = URL.parse(text);
  if (!url) return text;
  return url.pathname === '/' && url.search === '' && url.hash === '' ? url.href.slice(0, -1) : url.href;
}

/** Throws `config_invalid` with every problem. */
export function parseSettings(input: unknown): NostrSettings {
  const parsed = NostrSettings.safeParse(input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${placeOf(path)}: ${message}`);
  const told = `nostr has ${problems.length} problem(s):\n  ${problems.join('\n  ')}`;
  throw new TroupeError('config_invalid', told, { problems });
}

function placeOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (place, part) => (typeof part === 'number' ? `${place}[${part}]` : `${place}.${String(part)}`),
    'nostr',
  );
}

/** A relay's address for people and logs. Users, passwords and queries may be secrets, and are shown to nobody. */
export function shownRelay(url: string): string {
  if (!URL.canParse(url)) return 'what was given';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
