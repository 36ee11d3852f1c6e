import { defineTroupe } from '../../src/index.ts'; // from 'troupe' in your own project

// A script replaces the model, so this runs without a key. For a model, use one of the next three lines instead.
// const model = { provider: 'anthropic' as const, model: 'claude-sonnet-5' }; // ANTHROPIC_API_KEY
// const model = { provider: 'openai-compatible' as const, model: 'gpt-4o-mini' }; // OPENAI_API_KEY
// const model = { provider: 'openai-compatible' as const, model: 'qwen3', baseUrl: 'http://127.0.0.1:11434/v1' };
const model = { provider: 'scripted' as const, script: { rules: [{ reply: 'Answer {{n}} of mine.' }] } };

export const troupe = defineTroupe({
  agents: [
    { id: 'planner', instructions: 'Plan, then hand over to @coder.', tools: ['handoff'], ...model },
    { id: 'coder', role: 'worker', instructions: 'Write small, tested code.', ...model },
  ],
  defaults: { respondWhenUnaddressed: 'planner' },
});
