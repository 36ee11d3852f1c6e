import * as z from 'zod';

const VariableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'this is the name of a variable');

/** Above it timers overflow. */
const MAX_TIMEOUT_MS = 86_400_000;

const Shared = {
  /** The only tools there are for agents, as the server names them. Default: all of them. */
  tools: z.array(z.string().min(1)).min(1, 'leave it out to allow all tools').optional(),
  /** For the start, and for each call. */
  timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS).default(60_000),
  /** Of an output in a prompt, in place of `limits.previewBytes`. */
  previewBytes: z.int().min(256).optional(),
};

/** A process that is started with Troupe and spoken to over its standard input and output. */
const StdioServer = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  /** Variables that it gets beside PATH and HOME. */
  env: z.array(VariableName).default([]),
  cwd: z.string().min(1).optional(),
  ...Shared,
});
export type StdioServer = z.infer<typeof StdioServer>;

/** A server that runs elsewhere and is spoken to over streamable HTTP. */
const HttpServer = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: 'this is an http or https URL' })
    .refine((url) => !URL.canParse(url) || new URL(url).username + new URL(url).password === '', {
      message: 'a URL is no place for a password: use headersEnv',
    }),
  /** Headers of each request, each with the name of the variable that holds its value. */
  headersEnv: z.record(z.string().min(1), VariableName).default({}),
  ...Shared,
});
export type HttpServer = z.infer<typeof HttpServer>;

export type McpServer = StdioServer | HttpServer;
type McpServerInput = z.input<typeof StdioServer> | z.input<typeof HttpServer>;

// A union would only say that neither fits; this says what is wrong with the one that is meant.
export const McpServer = z.unknown().transform((written, context) => {
  const isHttp = typeof written === 'object' && written !== null && 'url' in written;
  const parsed = (isHttp ? HttpServer : StdioServer).safeParse(written, { reportInput: true });
  if (parsed.success) return parsed.data;
  context.issues.push(...(parsed.error.issues as z.core.$ZodRawIssue[]));
  return z.NEVER;
}) as unknown as z.ZodType<McpServer, McpServerInput>;

/** By the name that agents grant their tools with. */
export const McpServers = z.record(z.string(), McpServer);
export type McpServers = z.infer<typeof McpServers>;
