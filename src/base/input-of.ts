import type * as z from 'zod';

/**
 * What a schema takes, as editors show it: each field with the comment that stands above it in the schema. `z.input` computes new
 * names of fields and loses the comments; `Pick` and a mapping over its keys keep them. Lists may be readonly.
 */
export type InputOf<Schema> =
  Schema extends z.ZodOptional<infer Inner>
    ? InputOf<Inner> | undefined
    : Schema extends z.ZodDefault<infer Inner> | z.ZodPrefault<infer Inner>
      ? InputOf<Inner> | undefined
      : Schema extends z.ZodObject<infer Shape>
        ? ObjectInput<Shape>
        : Schema extends z.ZodArray<infer Item>
          ? readonly InputOf<Item>[]
          : Schema extends z.ZodRecord<infer _, infer Value>
            ? Record<string, InputOf<Value>>
            : Schema extends z.ZodJSONSchema // a union that contains itself
              ? z.core.util.JSONType
              : Schema extends z.ZodUnion<infer Options>
                ? InputOf<Options[number]>
                : z.input<Schema>;

/** The same of the fields of an object. */
type ObjectInput<Shape> = {
  [Field in keyof Pick<Shape, Exclude<keyof Shape, OptionalIn<Shape>>>]: InputOf<Shape[Field]>;
} & {
  [Field in keyof Pick<Shape, OptionalIn<Shape>>]?: InputOf<Shape[Field]>;
};

type OptionalIn<Shape> = {
  [Field in keyof Shape]: Shape[Field] extends { _zod: { optin: 'optional' | 'defaulted' } } ? Field : never;
}[keyof Shape];
