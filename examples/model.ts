import type { AgentInput } from '../src/index.ts'; // from 'troupe' in your own project

type Script = Extract<AgentInput, { provider: 'scripted' }>['script'];

const { TROUPE_PROVIDER, TROUPE_MODEL, TROUPE_BASE_URL, ANTHROPIC_API_KEY, OPENAI_API_KEY } = process.env;

/**
 * The provider named in TROUPE_PROVIDER, else the one whose key is set. Without a key, agents follow their scripts.
 */
const provider =
  TROUPE_PROVIDER || (ANTHROPIC_API_KEY ? 'anthropic' : OPENAI_API_KEY ? 'openai' : 'scripted');

/** Includes the model's reasoning. */
const maxOutputTokens = 16_384;

/** The model of an agent: from the environment, else the script. */
export function model(script: Script) {
  switch (provider) {
    case 'anthropic':
      return { provider: 'anthropic', model: TROUPE_MODEL || 'claude-sonnet-5', maxOutputTokens } as const;
    case 'openai':
      return { provider: 'openai', model: TROUPE_MODEL || 'gpt-5', maxOutputTokens } as const;
    case 'openai-compatible':
      return {
        provider: 'openai-compatible',
        model: TROUPE_MODEL || 'qwen3',
        baseUrl: TROUPE_BASE_URL || 'http://127.0.0.1:11434/v1',
      } as const;
    case 'scripted':
      return { provider: 'scripted', script } as const;
    default:
      throw new Error(
        `TROUPE_PROVIDER is "${provider}": the examples support anthropic, openai, openai-compatible and scripted`,
      );
  }
}
