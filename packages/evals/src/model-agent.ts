import type { AgentInput, TroupeInput } from './troupe.ts';
import type { TestModel } from './company.ts';
import { isProvider } from './provider.ts';

type GivenProvider = NonNullable<TroupeInput['providers']>[string];

/** The model of a judge or of a simulated user: a provider with its fields, rules of a script, or a provider of your own. */
export type ModelChoice =
  | TestModel
  | {
      /** The provider. */
      use: GivenProvider;
      /** Name of the model. Default `default`. */
      model?: string;
      /** Tokens of prompt and answer together. Default: that of a known model, else 128,000. */
      contextWindow?: number;
    };

/** A company of this agent alone. What is wrong with its model is found when the troupe is opened. */
export function companyOfOne(agent: Omit<AgentInput, 'provider'>, model: ModelChoice): TroupeInput {
  const { fields, providers } = modelFields(model);
  return {
    agents: [{ ...agent, ...fields } as AgentInput],
    ...(providers && { providers }),
    defaults: { respondWhenUnaddressed: agent.id },
  };
}

/** The fields that an agent with this model has, and the provider that the company brings for it. */
export function modelFields(model: ModelChoice): {
  fields: Record<string, unknown>;
  providers?: TroupeInput['providers'];
} {
  if (isProvider(model)) return givenFields({ use: model });
  if ('use' in model) return givenFields(model);
  return { fields: 'rules' in model ? { provider: 'scripted', script: model } : { ...model } };
}

function givenFields({
  use,
  ...fields
}: Extract<ModelChoice, { use: GivenProvider }>): ReturnType<typeof modelFields> {
  return {
    fields: { provider: 'custom', adapter: 'given', ...fields },
    providers: { given: use },
  };
}
