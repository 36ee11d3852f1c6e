import type * as z from 'zod';

/**
 * The input type of a schema. Editors show each field with the comment above it in the schema: `z.input` computes new
 * field names and loses the comments; `Pick` and a mapping over its keys keep them. Lists may be readonly. Schemas are
 * distinguished by their definitions, because comparing them with the classes of zod takes the compiler half of its
 * time for an agents file.
 */
export type InputOf<Schema> = Schema extends { _zod: { def: infer Def } }
  ? InputOfDef<Def, Schema>
  : z.input<Schema>;

type InputOfDef<Def, Schema> = Def extends { type: 'optional'; innerType: infer Inner }
  ? InputOf<Inner> | undefined
  : Def extends { type: 'default' | 'prefault'; innerType: infer Inner }
    ? InputOf<Inner> | undefined
    : Def extends { type: 'object'; shape: infer Shape }
      ? ObjectInput<Shape>
      : Def extends { type: 'array'; element: infer Item }
        ? readonly InputOf<Item>[]
        : Def extends { type: 'record'; valueType: infer Value }
          ? Record<string, InputOf<Value>>
          : Def extends { type: 'union'; options: readonly (infer Option)[] }
            ? Json extends z.output<Schema> // a union that contains itself
              ? Json
              : InputOf<Option>
            : z.input<Schema>;
type Json = z.core.util.JSONType;

/** The same for the fields of an object. */
export type ObjectInput<Shape> = {
  [Field in keyof Pick<Shape, Exclude<keyof Shape, OptionalIn<Shape>>>]: InputOf<Shape[Field]>;
} & {
  [Field in keyof Pick<Shape, OptionalIn<Shape>>]?: InputOf<Shape[Field]>;
};

type OptionalIn<Shape> = {
  [Field in keyof Shape]: Shape[Field] extends { _zod: { optin: 'optional' | 'defaulted' } } ? Field : never;
}[keyof Shape];
