import * as z from 'zod';
import { inputWords, unknownName } from '../../events/index.ts';
import type { InputOf } from '../../base/input-of.ts';
import { AllowList } from '../../base/net/settings.ts';

const VariableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'this is the name of a variable');

/** Timers overflow above this. */
const MAX_TIMEOUT_MS = 86_400_000;

/** Settings of every MCP server. */
const Shared = {
  /** The only tools that agents can be granted, by the server's names. Default: all. */
  tools: z.array(z.string().min(1)).min(1, 'leave it out to allow all tools').optional(),
  /** Longest start of the server, and longest call, ms. Default 60,000. */
  timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS).default(60_000),
  /** Bytes of an output in a prompt; the rest becomes an artifact. Default 8,192. */
  previewBytes: z.int().min(256).optional(),
};

const StdioServer = z.strictObject({
  /** Program to start. */
  command: z.string().min(1),
  /** Its arguments. Default: none. */
  args: z.array(z.string()).default([]),
  /** Names of variables that the process gets besides PATH and HOME. Default: none. */
  env: z.array(VariableName).default([]),
  /** Working directory, in an agents file relative to that file. Default: the folder of the agents file. */
  cwd: z.string().min(1).optional(),
  ...Shared,
});
/** A local process that Troupe starts, and talks to over its standard input and output. */
interface StdioServerInput extends InputOf<typeof StdioServer> {}
export type StdioServer = z.infer<typeof StdioServer>;

function webAddress(passwordField: string) {
  return z
    .url({ protocol: /^https?$/, error: 'this is an http or https URL' })
    .refine((url) => !URL.canParse(url) || new URL(url).username + new URL(url).password === '', {
      message: `a URL is no place for a password: use ${passwordField}`,
    });
}

/** How Troupe signs in to a server: OAuth client credentials, without a person. */
const SignIn = z
  .strictObject({
    /** Issuer of the authorization server, exactly as its metadata has it. The credentials are sent nowhere else. */
    issuer: webAddress('clientSecretEnv'),
    /** Id of the client that is registered with the issuer. */
    clientId: z.string().min(1),
    /** Name of the variable that holds the client's secret. Either this or `privateKeyEnv`. */
    clientSecretEnv: VariableName.optional(),
    /** Name of the variable that holds the client's private key, as PEM (PKCS 8). The key signs a JWT. */
    privateKeyEnv: VariableName.optional(),
    // HMAC is left out: its key is the secret itself, which `clientSecretEnv` already names.
    /** Algorithm of the private key. Default `RS256`. */
    algorithm: z.enum(['RS256', 'PS256', 'ES256', 'EdDSA']).optional(),
    /** Scopes to request, separated by spaces. Default: those that the server asks for. */
    scope: z.string().min(1).optional(),
    /** Further hosts that the sign-in may reach, such as that of the token endpoint, written as in `fetch.allow`. */
    allow: AllowList.optional(),
  })
  .refine((it) => (it.clientSecretEnv === undefined) !== (it.privateKeyEnv === undefined), {
    message: 'give clientSecretEnv or privateKeyEnv, and not both',
  })
  .refine((it) => it.algorithm === undefined || it.privateKeyEnv !== undefined, {
    message: 'an algorithm belongs to privateKeyEnv',
    path: ['algorithm'],
  });
export type SignIn = z.infer<typeof SignIn>;

const HttpServer = z
  .strictObject({
    /** The server's http or https URL, without a password. */
    url: webAddress('headersEnv'),
    /** Request headers: each maps to the name of the variable that holds its value. Default: none. */
    headersEnv: z.record(z.string().min(1), VariableName).default({}),
    /** How Troupe signs in. Default: no sign-in. */
    oauth: SignIn.optional(),
    ...Shared,
  })
  .refine((it) => !it.oauth || !Object.keys(it.headersEnv).some((name) => /^authorization$/i.test(name)), {
    message: 'the header Authorization is that of oauth: leave one of the two out',
    path: ['headersEnv'],
  });
export type HttpServer = z.infer<typeof HttpServer>;
/** A remote server, reached over streamable HTTP. */
interface HttpServerInput extends InputOf<typeof HttpServer> {}

export type McpServer = StdioServer | HttpServer;
export type McpServerInput = StdioServerInput | HttpServerInput;

// Not a union, whose error would only say that neither form fits: this reports the problems of the intended form.
export const McpServer = z.unknown().transform((written, context) => {
  const isHttp = typeof written === 'object' && written !== null && 'url' in written;
  const parsed = (isHttp ? HttpServer : StdioServer).safeParse(written, {
    error: inputWords,
    reportInput: true,
  });
  if (parsed.success) return parsed.data;
  context.issues.push(...(parsed.error.issues as z.core.$ZodRawIssue[]));
  return z.NEVER;
}) as unknown as z.ZodType<McpServer, McpServerInput>;

/** Servers, by the name that grants use. */
export const McpServers = z.record(z.string(), McpServer);
export type McpServers = z.infer<typeof McpServers>;

/**
 * Grants of a server's resources and prompts. `NAME/*` does not include them: granting all tools does not grant everything
 * that the server can read.
 */
export const RESOURCES = '@resources';
export const PROMPTS = '@prompts';

/** The tools that such a grant gives, by their names without the server's. */
export const EXTRA_TOOLS: ReadonlyMap<string, readonly string[]> = new Map([
  [RESOURCES, ['list_resources', 'read_resource']],
  [PROMPTS, ['list_prompts', 'get_prompt']],
]);

/** Whether a grant is one of resources or prompts. */
export function isExtra(tool: string): boolean {
  return tool === RESOURCES || tool === PROMPTS;
}

/** A grant in an agent's `tools`: `NAME/tool` or `NAME/*`. */
interface Grant {
  server: string;
  /** Null: all tools. */
  tool: string | null;
}

/** Null for the name of a tool that is built in or the application's own. */
export function parseGrant(name: string): Grant | null {
  const slash = name.indexOf('/');
  if (slash < 0) return null;
  const tool = name.slice(slash + 1);
  return { server: name.slice(0, slash), tool: tool === '*' ? null : tool };
}

/** Short enough to leave room for the tool's name: vendors allow 64 characters for both. */
const SERVER_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;

/** The readable parts of definitions that may be invalid. */
interface Sketch {
  /** Agents with their grants. */
  agents: readonly { tools: readonly (string | undefined)[] }[];
  /** Servers by name. `tools`: those that the definition allows. */
  servers: Readonly<Record<string, { tools?: readonly (string | undefined)[] | undefined }>>;
}

/** Problems of servers and grants that are visible before any server is asked for its tools. */
export function* grantProblems({
  agents,
  servers,
}: Sketch): Generator<{ path: PropertyKey[]; message: string }> {
  for (const name of Object.keys(servers)) {
    if (SERVER_NAME.test(name)) continue;
    yield { path: ['mcpServers', name], message: `a name must match ${SERVER_NAME}` };
  }
  for (const [index, { tools }] of agents.entries()) {
    for (const [at, name] of tools.entries()) {
      const grant = name === undefined ? null : parseGrant(name);
      const message = grant && grantProblem(grant, servers);
      if (message) yield { path: ['agents', index, 'tools', at], message };
    }
  }
}

function grantProblem({ server, tool }: Grant, servers: Sketch['servers']): string | null {
  if (!Object.hasOwn(servers, server)) {
    return unknownName(`there is no MCP server "${server}"`, server, Object.keys(servers));
  }
  const allowed = servers[server]?.tools?.filter((name) => name !== undefined);
  if (tool === null || !allowed || allowed.includes(tool)) return null;
  return unknownName(`mcpServers.${server}.tools does not allow "${tool}"`, tool, allowed);
}

/** Longest name that all vendors accept. */
const MAX_TOOL_NAME = 64;

/** The name by which models call a server's tool. */
export function toolName(server: string, tool: string): string {
  return `${server}__${tool.replace(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, MAX_TOOL_NAME);
}
