import { type ChatQuirks, isReasoningModel, quirksOf } from './openai/quirks.ts';
import { type Sampling, SAMPLING_FIELDS, type SamplingField } from './sampling.ts';

export interface SamplingProblem {
  field: SamplingField;
  message: string;
}

/** The settings of an agent that decide, beside those of sampling. */
interface SampledSettings extends Sampling {
  provider:
    | 'scripted'
    | 'custom'
    | 'ai-sdk'
    | 'claude-code'
    | 'codex'
    | 'a2a'
    | 'anthropic'
    | 'openai'
    | 'openai-compatible';
  model: string;
  baseUrl?: string | undefined;
  quirks?: ChatQuirks | undefined;
  thinking?: unknown;
}

/** The sampling settings that the provider or its model would refuse, each with the reason. */
export function samplingProblems(settings: SampledSettings): SamplingProblem[] {
  // An invalid address has its own problem.
  if (settings.baseUrl !== undefined && !URL.canParse(settings.baseUrl)) return [];
  switch (settings.provider) {
    case 'scripted':
    case 'custom':
    case 'ai-sdk':
      return [];
    case 'claude-code':
    case 'codex':
    case 'a2a':
      return refuse(settings, SAMPLING_FIELDS, () => `${settings.provider} has no such setting`);
    case 'anthropic':
      return anthropicProblems(settings);
    case 'openai':
      return [
        ...refuse(
          settings,
          ['topK', 'frequencyPenalty', 'presencePenalty', 'seed', 'stop'],
          () => "OpenAI's Responses API has no such setting; openai-compatible has more",
        ),
        ...reasoningProblems(settings, ['temperature', 'topP']),
      ];
    case 'openai-compatible':
      return chatProblems(settings);
  }
}

/** A problem for each of the fields that is set and for which there is a reason. */
function refuse(
  settings: Sampling,
  fields: readonly SamplingField[],
  reason: (field: SamplingField) => string | null,
): SamplingProblem[] {
  return fields.flatMap((field) => {
    const why = settings[field] === undefined ? null : reason(field);
    return why === null ? [] : [{ field, message: `${why}: leave ${field} out` }];
  });
}

function chatProblems(settings: SampledSettings): SamplingProblem[] {
  const { baseUrl = 'https://api.openai.com/v1' } = settings;
  const quirks = quirksOf(baseUrl, settings.quirks);
  const { hostname } = new URL(baseUrl);
  const reasoning = ['temperature', 'topP', 'frequencyPenalty', 'presencePenalty', 'stop'] as const;
  return [
    ...refuse(settings, ['topK'], () => (quirks.topK === false ? `${hostname} has no such setting` : null)),
    ...refuse(settings, ['seed'], () =>
      quirks.seedField === null ? `${hostname} has no such setting` : null,
    ),
    ...reasoningProblems(settings, reasoning),
  ];
}

function reasoningProblems(settings: SampledSettings, fields: readonly SamplingField[]): SamplingProblem[] {
  const { model } = settings;
  if (!isReasoningModel(model)) return [];
  return refuse(settings, fields, () => `${model} reasons, and OpenAI's reasoning models do not take it`);
}

/** Claude models that refuse every sampling setting, whatever server they run on. */
const UNSAMPLED =
  /claude-(?:opus-4[-.][7-9]|(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|\d\d)(?!\d)|mythos-preview)/;

function anthropicProblems(settings: SampledSettings): SamplingProblem[] {
  const {
    model,
    thinking,
    baseUrl = 'https://api.anthropic.com',
    temperature = 1,
    topP = 1,
    stop,
  } = settings;
  const isVendor = new URL(baseUrl).hostname === 'api.anthropic.com';
  const sampled = ['temperature', 'topP', 'topK'] as const;
  const whySampled = (field: SamplingField) => {
    if (isVendor) return "Anthropic's API has had no such setting since version 2026-10-21";
    if (UNSAMPLED.test(model)) return `${model} does not take it`;
    if (!thinking) return null;
    // While a model thinks, these values are what it uses anyway.
    if (field === 'temperature')
      return temperature === 1 ? null : 'a model that thinks has the temperature 1';
    if (field === 'topP') return topP >= 0.95 ? null : 'a model that thinks takes values from 0.95 on';
    return 'a model that thinks does not take it';
  };
  const isRange = temperature > 1 && !isVendor;
  const range = { field: 'temperature' as const, message: 'is at most 1 for Claude' };
  const blank = { field: 'stop' as const, message: 'Anthropic refuses a text of white space only' };
  return [
    ...refuse(
      settings,
      ['frequencyPenalty', 'presencePenalty', 'seed'],
      () => "Anthropic's API has no such setting",
    ),
    ...refuse(settings, sampled, whySampled),
    ...(isRange ? [range] : []),
    ...(stop?.some((text) => text.trim() === '') ? [blank] : []),
  ];
}
