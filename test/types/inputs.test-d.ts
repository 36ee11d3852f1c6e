import { expectTypeOf } from 'vitest';
import type * as z from 'zod';
import type { AccessInput } from '../../src/library/access/index.ts';
import type { AccessSettings } from '../../src/library/access/access-settings.ts';
import type { AgentDefinition } from '../../src/library/config/agent-definition.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { TroupeDefinition, TroupeInput } from '../../src/library/config/agents-file.ts';
import type { LimitInput, LimitSettings } from '../../src/library/config/limit-settings.ts';
import type { ContextInput, ContextSettings } from '../../src/library/config/context-settings.ts';

/*
 * Some interfaces of a definition are written out, the others are made of the schemas by `InputOf`. They must have exactly the
 * fields of the schemas. Lists of an interface are `readonly`; those of a schema are not.
 */
type Same<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends readonly (infer Item)[]
    ? Same<Item>[]
    : T extends z.ZodType | RegExp
      ? T
      : T extends object
        ? { -readonly [K in keyof T]: Same<T[K]> }
        : T;

expectTypeOf<Same<LimitInput>>().toEqualTypeOf<Same<NonNullable<z.input<typeof LimitSettings>>>>();
expectTypeOf<Same<ContextInput>>().toEqualTypeOf<Same<z.input<typeof ContextSettings>>>();
expectTypeOf<Same<AccessInput>>().toEqualTypeOf<Same<z.input<typeof AccessSettings>>>();

type Agent<P extends AgentInput['provider']> = Same<Extract<AgentInput, { provider: P }>>;
type AgentOfSchema<P extends AgentInput['provider']> = Same<
  Extract<z.input<typeof AgentDefinition>, { provider: P }>
>;
expectTypeOf<AgentInput['provider']>().toEqualTypeOf<z.input<typeof AgentDefinition>['provider']>();
expectTypeOf<Agent<'scripted'>>().toEqualTypeOf<AgentOfSchema<'scripted'>>();
expectTypeOf<Agent<'custom'>>().toEqualTypeOf<AgentOfSchema<'custom'>>();
expectTypeOf<Agent<'openai-compatible'>>().toEqualTypeOf<AgentOfSchema<'openai-compatible'>>();
expectTypeOf<Agent<'anthropic'>>().toEqualTypeOf<AgentOfSchema<'anthropic'>>();
expectTypeOf<Agent<'openai'>>().toEqualTypeOf<AgentOfSchema<'openai'>>();
expectTypeOf<Agent<'claude-code'>>().toEqualTypeOf<AgentOfSchema<'claude-code'>>();
expectTypeOf<Agent<'codex'>>().toEqualTypeOf<AgentOfSchema<'codex'>>();

type Definition = z.input<typeof TroupeDefinition>;
type Agents = 'agents' | 'templates';
expectTypeOf<keyof TroupeInput>().toEqualTypeOf<keyof Definition>();
expectTypeOf<Same<Omit<TroupeInput, Agents>>>().toEqualTypeOf<Same<Omit<Definition, Agents>>>();
