import type { Tool as ListedTool } from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { defineTool, type Tool } from '../tool.ts';
import type { Connection } from './connection.ts';
import { resultText } from './result-text.ts';
import type { McpServer } from './settings.ts';

/** A tool of a server, under the name that models call it by. */
export interface McpTool extends Tool {
  readonly origin: { server: string; tool: string };
}

/** What all vendors accept. */
const MAX_NAME_LENGTH = 64;

export function toolName(server: string, tool: string): string {
  return `${server}__${tool.replace(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, MAX_NAME_LENGTH);
}

interface Origin {
  server: string;
  settings: McpServer;
  connection: Connection;
  redact: (text: string) => string;
}

export function wrapTool(listed: ListedTool, { server, settings, connection, redact }: Origin): McpTool {
  const { annotations, inputSchema } = listed;
  const { $schema: _, ...parameters } = inputSchema;
  const tool = defineTool({
    name: toolName(server, listed.name),
    description: (listed.description ?? listed.title ?? '').toWellFormed(),
    // The server checks what it is sent; it alone can know all of its schema's words.
    schema: z.looseObject({}),
    // Without `properties` a schema is refused by some vendors.
    parameters: { properties: {}, ...parameters },
    idempotent: annotations?.idempotentHint === true || annotations?.readOnlyHint === true,
    timeoutMs: settings.timeoutMs,
    ...(settings.previewBytes !== undefined && { previewBytes: settings.previewBytes }),
    async run(args, { signal }) {
      const result = await connection.call(listed.name, args, signal);
      const text = resultText(result);
      if (result.isError) throw new Error(redact(text));
      return text;
    },
  });
  return { ...tool, origin: { server, tool: listed.name } };
}
