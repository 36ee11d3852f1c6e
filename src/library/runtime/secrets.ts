import { createRedact, credentialOf, type Redact } from '../../providers/redact.ts';
import { readResult } from '../../tools/run-tool.ts';
import type { Tool, ToolReturn } from '../../tools/tool.ts';
import type { TroupeDefinition } from '../config/agents-file.ts';
import type { Integration } from '../integrations/integration.ts';

/**
 * User and password of a URL. Passwords with unescaped punctuation do not match; they are found by their value. The bounds
 * keep the match linear in the length of the text.
 */
const IN_URLS = /\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@"'<>]*@/gi;
const IN_QUERIES = /([?&](?:key|api_?key|access_?token|token|secret|(?:sentinel)?password)=)([^&\s"'#]+)/gi;
/** Headers in plain form and as JSON. */
const IN_HEADERS =
  /\b((?:proxy-)?authorization|x-api-key|api-key|cookie)(["']?\s*[:=]\s*["']?)(?:(?:basic|bearer)\s+)?[^\s"',;]+/gi;

/**
 * Hides secrets in log lines and spans: the given values, the credentials of the given URLs, and everything shaped like a
 * key, an authorization header, or a user and password in a URL.
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

/** The secrets of a URL, escaped and unescaped: those before the host, and those in the query, as in bunker URLs. */
function credentialsIn(url: string): string[] {
  const inQuery = [...url.matchAll(IN_QUERIES)].map(([, , value = '']) => value);
  return [...beforeHost(url), ...inQuery.flatMap((value) => [value, decoded(value)])];
}

/** A secret, and the parts of it that may stand alone. */
function partsOf(secret: string): string[] {
  return [secret, credentialOf(secret) ?? secret, ...credentialsIn(secret)];
}

/** Variables of vendors' SDKs with one header a line. Only the server knows which values are secret. */
const CUSTOM_HEADERS = ['OPENAI_CUSTOM_HEADERS', 'ANTHROPIC_CUSTOM_HEADERS'];

/** The values of `name: value` lines. */
function headerValues(lines: string): string[] {
  return lines.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon === -1 ? [] : partsOf(line.slice(colon + 1).trim());
  });
}

/** Parsed by hand, because `URL` refuses lists of hosts, which MongoDB allows. */
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

/** Names of variables that hold secrets. A name that also matches `PLACE` holds the location of a secret instead. */
const SECRET = /KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL|NSEC|BUNKER/i;
const PLACE = /(?:FILE|PATH|DIR|SOCK|URL|CREDENTIALS)$/i;
/** In characters. Shorter values may be placeholders such as `not-needed`, which texts may contain. */
const LEAST_SECRET = 12;

/**
 * Hides the secrets of this process in results and errors of a tool, which are stored and part of every later prompt.
 * Each secret is replaced by the name of its variable.
 */
export function hideInTools(
  definition: ModelSettings,
  env: Readonly<Record<string, string | undefined>>,
  urls: readonly (string | undefined)[],
): (tool: Tool) => Tool {
  const named = new Set(keyNames(definition));
  const secrets = Object.entries(env).flatMap(([name, value = '']) => {
    const isSecret = named.has(name) || (SECRET.test(name) && !PLACE.test(name));
    const ofHeaders = CUSTOM_HEADERS.includes(name) ? headerValues(value) : [];
    const found = isSecret ? partsOf(value.trim()) : [...ofHeaders, ...credentialsIn(value)];
    return found.map((secret) => [name, secret] as const);
  });
  const ofServices = urls.flatMap((url = '') =>
    credentialsIn(url).map((secret) => ['password', secret] as const),
  );
  const hide = hideValues([...secrets, ...ofServices]);
  return (tool) => ({ ...tool, run: (args, context) => hidden(hide, () => tool.run(args, context)) });
}

/** Values of the variables whose names say that they hold a secret. */
export function namedSecrets(env: Variables): string[] {
  return Object.entries(env).flatMap(([name, value]) => (value && SECRET.test(name) ? [value] : []));
}

function hideValues(secrets: readonly (readonly [name: string, secret: string])[]): (text: string) => string {
  const forms = secrets
    .filter(([, secret]) => secret.length >= LEAST_SECRET)
    // Plain and as JSON.
    .flatMap(([name, secret]) =>
      [...new Set([secret, JSON.stringify(secret).slice(1, -1)])].map((form) => [name, form] as const),
    )
    // Longest first: a secret may contain another one, whose replacement would leave its rest.
    .sort(([, a], [, b]) => b.length - a.length);
  return (text) => forms.reduce((kept, [name, form]) => kept.replaceAll(form, () => `[${name}]`), text);
}

async function hidden(
  hide: (text: string) => string,
  run: () => ReturnType<Tool['run']>,
): Promise<ToolReturn> {
  try {
    return readResult(await run(), hide);
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
    const shown = hide(message);
    if (shown === message) throw thrown;
    throw new Error(shown);
  }
}

export interface ModelSettings extends Pick<
  TroupeDefinition,
  'agents' | 'context' | 'hideSecrets' | 'mcpServers' | 'providers'
> {
  integrations?: readonly Pick<Integration, 'secretVariables'>[] | undefined;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** All variables that the definition uses for secrets. */
function keyNames({ agents, context, mcpServers, integrations = [] }: ModelSettings): string[] {
  const ofModels = agents.flatMap((agent) => [
    ...('apiKeyEnv' in agent && agent.apiKeyEnv !== undefined ? [agent.apiKeyEnv] : []),
    ...('headersEnv' in agent ? Object.values(agent.headersEnv ?? {}) : []),
  ]);
  const ofServers = Object.values(mcpServers ?? {}).flatMap((server) =>
    'url' in server ? Object.values(server.headersEnv ?? {}) : [],
  );
  const ofIntegrations = integrations.flatMap(({ secretVariables = [] }) => secretVariables);
  const { embedder } = context;
  const ofEmbedder = embedder && 'apiKeyEnv' in embedder ? [embedder.apiKeyEnv] : [];
  return [...ofModels, ...ofServers, ...ofIntegrations, ...ofEmbedder];
}

/**
 * Values that no recording, log line or span may contain: those of the secret variables, and of all variables that are
 * passed to programs and tool servers.
 */
export function secretValues(definition: ModelSettings, env: Variables): string[] {
  const given = [
    ...definition.agents.flatMap((agent) => ('env' in agent ? agent.env : [])),
    ...Object.values(definition.mcpServers ?? {}).flatMap((server) =>
      'url' in server ? [] : (server.env ?? []),
    ),
  ];
  const ofHeaders = CUSTOM_HEADERS.flatMap((name) => headerValues(env[name] ?? ''));
  const values = [...keyNames(definition), ...given].flatMap((name) => partsOf((env[name] ?? '').trim()));
  // A short value, such as an API version, is not a secret and may occur anywhere in a log line.
  return [...values, ...ofHeaders.filter((value) => value.length >= LEAST_SECRET)];
}
