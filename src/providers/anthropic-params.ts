import type Anthropic from '@anthropic-ai/sdk';
import type { ModelRequest } from './provider.ts';
import type { AnthropicFields } from './settings.ts';

/** What a request says beside its messages and tools; some of it is in test at the vendor's. */
export interface AnthropicParams {
  thinking?: Anthropic.Beta.BetaThinkingConfigParam;
  output_config?: Anthropic.OutputConfig;
  context_management?: Anthropic.Beta.BetaContextManagementConfig;
}

/**
 * Of these the vendor checks that nothing before a block of thinking has changed, and refuses the request if it has.
 * Our prompts do change, when outputs are pruned or a summary takes the place of what it sums up: then the block is to
 * be left out instead. They think adaptively whether they are asked or not.
 */
const BINDS_THINKING =
  /claude-(?:(?:fable|mythos)-5[-.][1-9]|(?:opus|sonnet|haiku)-5[-.][5-9]|[a-z]+-[6-9])(?!\d)/;
const BINDING = { block_binding: { prefix_mismatch_behavior: 'drop_block' } } as const;
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';
const EDITING_BETA = 'context-management-2025-06-27';

/** The features in test that these parameters ask for, as a header. */
export function betasOf({ thinking, context_management }: AnthropicParams): { 'anthropic-beta'?: string } {
  const betas = [
    ...(thinking && 'block_binding' in thinking ? [BINDING_BETA] : []),
    ...(context_management ? [EDITING_BETA] : []),
  ];
  return betas.length > 0 ? { 'anthropic-beta': betas.join(',') } : {};
}

export function anthropicParams(
  { model, maxOutputTokens }: ModelRequest,
  fields: AnthropicFields,
): AnthropicParams {
  const { thinking, effort, contextEditing } = fields;
  const params: AnthropicParams = {};
  const binds = BINDS_THINKING.test(model);
  const binding = binds ? BINDING : {};
  // A short answer, as a summary asks for, leaves no room for the budget: the vendor refuses one that is not below it.
  if (typeof thinking === 'object' && thinking.budgetTokens < maxOutputTokens)
    params.thinking = { type: 'enabled', budget_tokens: thinking.budgetTokens, ...binding };
  else if (thinking === 'adaptive' || binds) params.thinking = { type: 'adaptive', ...binding };
  if (effort) params.output_config = { effort };
  if (contextEditing) params.context_management = { edits: editsOf(contextEditing) };
  return params;
}

type Edits = NonNullable<Anthropic.Beta.BetaContextManagementConfig['edits']>;

/** Thinking first: the vendor refuses the other order. */
function editsOf({ clearThinking, clearToolUses }: NonNullable<AnthropicFields['contextEditing']>): Edits {
  const edits: Edits = [];
  if (clearThinking) {
    const keep = { type: 'thinking_turns', value: clearThinking.keepTurns } as const;
    edits.push({ type: 'clear_thinking_20251015', keep });
  }
  if (clearToolUses) {
    const { triggerTokens, keep, clearAtLeastTokens: least } = clearToolUses;
    edits.push({
      type: 'clear_tool_uses_20250919',
      trigger: { type: 'input_tokens', value: triggerTokens },
      ...(keep === undefined ? {} : { keep: { type: 'tool_uses', value: keep } }),
      ...(least === undefined ? {} : { clear_at_least: { type: 'input_tokens', value: least } }),
    });
  }
  return edits;
}
