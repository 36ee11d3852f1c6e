import { createRedact, type Redact } from '../providers/redact.ts';
import type { Tool, ToolReturn } from '../tools/tool.ts';
import type { TroupeDefinition } from '../config/agents-file.ts';
import type { Integration } from '../integrations/integration.ts';

/**
 * User and password before the host of any URL; those with raw marks in them are known by value. Bounded, so that a long
 * text without any costs no more than its length.
 */
const IN_URLS = /\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@"'<>]*@/gi;
const IN_QUERIES = /([?&](?:key|api_?key|access_?token|token|secret|password)=)([^&\s"'#]+)/gi;
/** As headers are written, and as they stand in JSON. */
const IN_HEADERS =
  /\b((?:proxy-)?authorization|x-api-key|api-key|cookie)(["']?\s*[:=]\s*["']?)(?:(?:basic|bearer)\s+)?[^\s"',;]+/gi;

/**
 * Hides secrets from lines and spans: values of these variables, what looks like a key, headers that authorize, and what
 * stands before the host of a URL.
 */
export function hideSecrets(
  secrets: readonly (string | undefined)[],
  urls: readonly (string | undefined)[],
): Redact {
  const redact = createRedact([...secrets, ...urls.flatMap((url) => credentialsIn(url ?? ''))]);
  return (text) =>
    redact(text)
      .replace(IN_URLS, '$1[key]@')
      .replace(IN_QUERIES, '$1[key]')
      .replace(IN_HEADERS, (_, name: string, mark: string) => `${name}${mark}[key]`);
}

/** As written and as they are meant: before the host, and in the query, where bunker URLs have them. */
export function credentialsIn(url: string): string[] {
  const inQuery = [...url.matchAll(IN_QUERIES)].map(([, , value = '']) => value);
  return [...beforeHost(url), ...inQuery.flatMap((value) => [value, decoded(value)])];
}

/** By hand: lists of hosts are no URLs to a parser. */
function beforeHost(url: string): string[] {
  const start = url.indexOf('://') + 3;
  const end = url.lastIndexOf('@');
  if (start < 3 || end < start) return [];
  const both = url.slice(start, end);
  const password = both.slice(both.indexOf(':') + 1);
  return [both, password, decoded(password)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Variables that hold secrets, by their names; those that say where one is do not. */
const SECRET = /KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL|NSEC|BUNKER/i;
const PLACE = /(?:FILE|PATH|DIR|SOCK|URL|CREDENTIALS)$/i;
/** Shorter values are placeholders such as `not-needed`, which texts may hold. */
const LEAST_SECRET = 12;

/**
 * What tools answer and how they fail is stored, and is in every prompt from then on: no secret of this process gets there
 * because a tool printed its environment or the request that it failed with. In the place of a value stands its name.
 */
export function hideInTools(
  definition: ModelSettings,
  env: Readonly<Record<string, string | undefined>>,
  urls: readonly (string | undefined)[],
): (tool: Tool) => Tool {
  const named = new Set(keyNames(definition));
  const secrets = Object.entries(env).flatMap(([name, value = '']) => {
    const isSecret = named.has(name) || (SECRET.test(name) && !PLACE.test(name));
    const found = isSecret ? [value.trim(), ...credentialsIn(value)] : credentialsIn(value);
    return found.map((secret) => [name, secret] as const);
  });
  const ofServices = urls.flatMap((url = '') =>
    credentialsIn(url).map((secret) => ['password', secret] as const),
  );
  const hide = hideValues([...secrets, ...ofServices]);
  return (tool) => ({ ...tool, run: (args, context) => hidden(hide, () => tool.run(args, context)) });
}

function hideValues(secrets: readonly (readonly [name: string, secret: string])[]): (text: string) => string {
  const forms = secrets
    .filter(([, secret]) => secret.length >= LEAST_SECRET)
    // As it is, and as it stands in JSON.
    .flatMap(([name, secret]) =>
      [...new Set([secret, JSON.stringify(secret).slice(1, -1)])].map((form) => [name, form] as const),
    )
    // What contains another goes first, or a part of it would be left.
    .sort(([, a], [, b]) => b.length - a.length);
  return (text) => forms.reduce((kept, [name, form]) => kept.replaceAll(form, () => `[${name}]`), text);
}

async function hidden(
  hide: (text: string) => string,
  run: () => ReturnType<Tool['run']>,
): Promise<ToolReturn> {
  try {
    const returned = await run();
    if (typeof returned === 'string') return hide(returned);
    // Tools are also written in JavaScript: what else there is, `runTool` makes a text of, or refuses.
    if (typeof returned !== 'object' || returned === null) return returned;
    if (typeof returned.text === 'string') return { ...returned, text: hide(returned.text) };
    return hide(JSON.stringify(returned) ?? '');
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
    const shown = hide(message);
    if (shown === message) throw thrown;
    throw new Error(shown);
  }
}

export interface ModelSettings extends Pick<TroupeDefinition, 'agents' | 'context' | 'mcpServers'> {
  integrations?: readonly Pick<Integration, 'secretVariables'>[] | undefined;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Variables that can only hold a secret, whatever they are called. */
function keyNames({ agents, context, mcpServers, integrations = [] }: ModelSettings): string[] {
  const ofModels = agents.flatMap((agent) => ('apiKeyEnv' in agent ? [agent.apiKeyEnv] : []));
  const ofServers = Object.values(mcpServers ?? {}).flatMap((server) =>
    'url' in server ? Object.values(server.headersEnv ?? {}) : [],
  );
  const ofIntegrations = integrations.flatMap(({ secretVariables = [] }) => secretVariables);
  const ofEmbedder = context.embedder ? [context.embedder.apiKeyEnv] : [];
  return [...ofModels, ...ofServers, ...ofIntegrations, ...ofEmbedder];
}

/** What is in no recording, line or span: the values of those, and of what programs and tool servers are given. */
export function secretValues(definition: ModelSettings, env: Variables): string[] {
  const given = [
    ...definition.agents.flatMap((agent) => ('env' in agent ? agent.env : [])),
    ...Object.values(definition.mcpServers ?? {}).flatMap((server) =>
      'url' in server ? [] : (server.env ?? []),
    ),
  ];
  return [...keyNames(definition), ...given].flatMap((name) => {
    const value = env[name] ?? '';
    return [value, ...credentialsIn(value)];
  });
}
