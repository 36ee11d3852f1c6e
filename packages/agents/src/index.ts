/** Agents that run elsewhere. Troupe loads this module by name when the `provider` of an agent asks for it. */
export { type A2aOptions, createA2a } from './a2a/a2a.ts';
export { type ClaudeCodeOptions, createClaudeCode } from './claude-code/claude-code.ts';
export { type CodexOptions, createCodex } from './codex/codex.ts';
export { findProgram } from './programs.ts';
