import type { MarkFamily } from '../template-marks.ts';
import type { AiSdkModel } from '../ai-sdk-model.ts';
import type { SchemaForm } from '../plain-schema.ts';
import { COMMON_KEYS, PLAIN_TOOLS, type ToolRules } from '../tool-schema.ts';
import { wholeToolSchema } from '../whole-schema.ts';
import type { PartMetadata } from './signature.ts';

/** Differences of vendors that the AI SDK leaves to its callers. */
export interface VendorTraits {
  /** Options of a message after which the prompt is cached. */
  cacheMark?: PartMetadata;
  /** Options of every call, unless the agent sets others. */
  options: PartMetadata;
  /** The vendor refuses a schema of the reply beside tools. */
  replyOrTools: boolean;
  /** Form of the schemas of replies. */
  schemas: SchemaForm;
  tools: ToolRules;
  templateMarks: readonly MarkFamily[];
  /** Ids of calls that the vendor takes. Those of its own model go back unchanged. */
  callIds: RegExp;
}

const EPHEMERAL = { cacheControl: { type: 'ephemeral' } };
const CACHE_MARK = { anthropic: EPHEMERAL, bedrock: { cachePoint: { type: 'default' } } };
/** Vendors whose packages or servers take any schema. Others may be servers of one's own, such as llama.cpp. */
const WHOLE_SCHEMAS = /^(?:openai|azure|anthropic|google|vertex|amazon-bedrock|bedrock|gateway)\b/;
/** The log is the memory, and schemas of replies may be open. */
const OPENAI = { store: false, strictJsonSchema: false };

/** The strictest of these vendors, which may be behind any of their packages: Anthropic. */
const WHOLE_TOOLS: ToolRules = { shape: wholeToolSchema, keys: COMMON_KEYS };
const CLAUDE_IDS = /^[A-Za-z0-9_-]{1,64}$/;
const OPENAI_IDS = /^[\s\S]{1,40}$/;
const ANY_ID = /^/;

export function traitsOf({ provider, modelId }: Pick<AiSdkModel, 'provider' | 'modelId'>): VendorTraits {
  const isClaude = /anthropic|claude/.test(`${provider} ${modelId}`);
  const isOpenAi = /^(?:openai|azure)\b/.test(provider);
  return {
    ...((isClaude || /bedrock/.test(provider)) && { cacheMark: CACHE_MARK }),
    options: isOpenAi ? { openai: OPENAI, azure: OPENAI } : {},
    schemas: WHOLE_SCHEMAS.test(provider) ? 'whole' : 'plain',
    tools: isClaude || WHOLE_SCHEMAS.test(provider) ? WHOLE_TOOLS : PLAIN_TOOLS,
    replyOrTools: provider.startsWith('google') && /gemini-(?:1|2)/.test(modelId),
    callIds: isClaude || /bedrock/.test(provider) ? CLAUDE_IDS : isOpenAi ? OPENAI_IDS : ANY_ID,
    templateMarks: isClaude ? ['speakers', 'clients'] : isOpenAi ? ['tokens'] : ['tokens', 'templates'],
  };
}
