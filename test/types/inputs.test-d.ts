import { expectTypeOf } from 'vitest';
import type * as z from 'zod';
import type { InputOf } from '../../src/base/input-of.ts';
import type { AccessInput, AccessSettings } from '../../src/library/access/access-settings.ts';
import type { AgentFields, AgentInput } from '../../src/library/config/agent-input.ts';
import type { TroupeDefinition, TroupeInput } from '../../src/library/config/agents-file.ts';
import type { PROVIDER_SETTINGS, ProviderSettings } from '../../src/providers/settings.ts';

/*
 * The types of settings are made of their schemas by `InputOf`, which keeps the comments. They must have exactly the fields of the
 * schemas, and take what the schemas take. Lists of a type are `readonly`; those of a schema are not.
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

type Settings = typeof PROVIDER_SETTINGS;
type Of<P extends keyof Settings> = Same<InputOf<Settings[P]>>;
type OfSchema<P extends keyof Settings> = Same<z.input<Settings[P]>>;
type Plain<T> = Same<Omit<T, 'reply'>>;
expectTypeOf<keyof InputOf<typeof AgentFields>>().toEqualTypeOf<keyof z.input<typeof AgentFields>>();
expectTypeOf<Plain<InputOf<typeof AgentFields>>>().toExtend<Plain<z.input<typeof AgentFields>>>();
expectTypeOf<Plain<z.input<typeof AgentFields>>>().toExtend<Plain<InputOf<typeof AgentFields>>>();
expectTypeOf<Same<AccessInput>>().toEqualTypeOf<Same<z.input<typeof AccessSettings>>>();
expectTypeOf<Of<'scripted'>>().toEqualTypeOf<OfSchema<'scripted'>>();
expectTypeOf<Of<'ai-sdk'>>().toEqualTypeOf<OfSchema<'ai-sdk'>>();
expectTypeOf<Of<'custom'>>().toEqualTypeOf<OfSchema<'custom'>>();
expectTypeOf<Of<'openai-compatible'>>().toEqualTypeOf<OfSchema<'openai-compatible'>>();
expectTypeOf<Of<'anthropic'>>().toEqualTypeOf<OfSchema<'anthropic'>>();
expectTypeOf<Of<'openai'>>().toEqualTypeOf<OfSchema<'openai'>>();
expectTypeOf<Of<'claude-code'>>().toEqualTypeOf<OfSchema<'claude-code'>>();
expectTypeOf<Of<'codex'>>().toEqualTypeOf<OfSchema<'codex'>>();
expectTypeOf<AgentInput['provider']>().toEqualTypeOf<ProviderSettings['provider']>();

type Definition = z.input<typeof TroupeDefinition>;
type Agents = 'agents' | 'templates';
expectTypeOf<keyof TroupeInput>().toEqualTypeOf<keyof Definition>();
expectTypeOf<Same<Omit<TroupeInput, Agents>>>().toEqualTypeOf<Same<Omit<Definition, Agents>>>();
