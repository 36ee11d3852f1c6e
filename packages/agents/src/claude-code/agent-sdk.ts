import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SpawnOptions } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { TroupeError, appendSchema, type MessageEvent, type ModelRequest, shownImages } from '../troupe.ts';
import { findPeer } from '../programs.ts';
import { flattenMessages } from '../flatten-messages.ts';

/** The part of the Claude Agent SDK that Troupe uses, typed by shape: the package is proprietary and so no dependency. */
export interface AgentSdk {
  version: string;
  query(params: {
    prompt: AsyncIterable<SdkUserMessage>;
    options: Record<string, unknown>;
  }): AsyncIterable<SdkMessage>;
}

export interface SdkUserMessage {
  type: 'user';
  message: { role: 'user'; content: readonly PromptBlock[] };
  parent_tool_use_id: null;
}

/** The fields that Troupe reads, of any kind of message. */
export interface SdkMessage {
  type: string;
  subtype?: string;
  session_id?: string;
  uuid?: string;
  /** Set on messages of subagents. */
  parent_tool_use_id?: string | null;
  /** Set on `stream_event` messages. */
  event?: MessageEvent;
  /** Set on `assistant` messages that report an API error. */
  is_api_error_message?: boolean;
  error?: string;
  /** Set on `assistant` and `result` messages. */
  api_error_status?: number | null;
  api_error_type?: string;
  api_error?: string;
  /** The other fields are set on `result` messages. */
  is_error?: boolean;
  result?: string;
  errors?: string[];
  terminal_reason?: string;
}

export interface SdkSpawn extends Pick<SpawnOptions, 'cwd' | 'env'> {
  command: string;
  args: string[];
}

/** The parts of a process that the SDK needs. */
export interface SdkChild {
  stdin: Writable;
  stdout: Readable;
  readonly killed: boolean;
  readonly exitCode: number | null;
  kill(signal: NodeJS.Signals): boolean;
}

const PACKAGE = '@anthropic-ai/claude-agent-sdk';

/** The installed SDK, which includes the program. Throws `provider_unusable`. */
export async function loadAgentSdk(env = process.env): Promise<AgentSdk> {
  const { dir, version, manifest } = findPeer('claude-code', env);
  try {
    const main = typeof manifest['main'] === 'string' ? manifest['main'] : 'sdk.mjs';
    const { query } = (await import(pathToFileURL(join(dir, main)).href)) as Pick<AgentSdk, 'query'>;
    return { version, query };
  } catch (cause) {
    const message = `${PACKAGE} ${version} in ${dir} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new TroupeError('provider_unusable', message, { package: PACKAGE, version }, { cause });
  }
}

export type PromptBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; source: { type: 'base64'; media_type: string; data: string } };

/**
 * The content of a request: instructions, and one user message with the texts and images of all other messages. The CLI itself
 * adds the names of the files in which it stores the images.
 */
interface PromptBlocks {
  system: string;
  blocks: PromptBlock[];
}

/** Sent if a request has no content: the API refuses empty texts, and the CLI would wait forever. */
const NO_WORDS = '(no words)';

export function promptBlocks({ messages: asked, images, replySchema }: ModelRequest): PromptBlocks {
  // A resumed session already has its instructions.
  const begins = asked[0]?.role === 'system';
  const messages = begins && replySchema ? appendSchema(asked, replySchema) : asked;
  const { system, texts } = flattenMessages(messages);
  const spoken = messages.filter(({ role }) => role !== 'system');
  const blocks = spoken.flatMap((message, i): PromptBlock[] => {
    const named = message.role === 'user' ? message.images : [];
    const shown = shownImages(named, images).map(({ mediaType, data }): PromptBlock => ({
      type: 'image',
      source: { type: 'base64', media_type: mediaType, data },
    }));
    const text = (texts[i] ?? '').toWellFormed();
    return text.trim() === '' ? shown : [...shown, { type: 'text', text }];
  });
  return { system, blocks: blocks.length > 0 ? blocks : [{ type: 'text', text: NO_WORDS }] };
}
