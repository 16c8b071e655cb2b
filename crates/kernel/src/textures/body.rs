//! Functions, statement by statement, with calls in place of the builtins for textures. `mod` calls `rewrite` for the entry point and for each copy of a
//! function. A value may be known (`Known::Literal`): then branches on it are decided here, and only the taken one is written. Builtins on an app's own
//! textures are copied as they are.

use naga::valid::FunctionInfo;
use naga::{
    Block, Expression, Function, Handle, ImageQuery, Literal, Range, SampleLevel, Scalar, ScalarKind, Span, Statement,
    SwitchCase, Type, TypeInner, VectorSize,
};

use super::{Bound, Origin, Outcome, Work, fold, refuse, scalar_type, vector_of};
use crate::flow;
use cantus_base::listed::Listed;
use cantus_base::texture::{SampleType, ViewDimension};

/// The new form of an expression of the old function.
#[derive(Debug, Clone, Copy)]
enum Known {
    Value(Handle<Expression>),
    Literal(Literal),
    Texture(usize),
    Sampler(usize),
}

/// The flag of [`super::modes`] for calls with an offset.
const OFFSET: u32 = 1 << 13;
const COMPARE: u32 = 15 << 9;
const NO_CODE: &str = "an expression out of order (a defect: please report the kernel)";

pub(super) struct Body<'w, 'a> {
    work: &'w mut Work<'a>,
    origin: Origin,
    function: &'a Function,
    info: Option<&'a FunctionInfo>,
    bound: &'w [Option<Bound>],
    new: Function,
    map: Vec<Option<Known>>,
    block: Block,
    span: Span,
    literals: Vec<(Literal, Handle<Expression>)>,
}

impl<'w, 'a> Body<'w, 'a> {
    pub(super) fn rewrite(
        work: &'w mut Work<'a>,
        origin: Origin,
        function: &'a Function,
        info: Option<&'a FunctionInfo>,
        bound: &'w [Option<Bound>],
    ) -> Outcome<Function> {
        let mut new = Function {
            name: function.name.clone(),
            result: function.result.clone(),
            diagnostic_filter_leaf: function.diagnostic_filter_leaf,
            ..Function::default()
        };
        for (place, argument) in function.arguments.iter().enumerate() {
            if bound.get(place).copied().flatten().is_none() {
                let mut argument = argument.clone();
                argument.ty = work.ty(origin, argument.ty);
                new.arguments.push(argument);
            }
        }
        if let Some(result) = &mut new.result {
            result.ty = work.ty(origin, result.ty);
        }
        let map = vec![None; function.expressions.len()];
        let (block, span, literals) = (Block::new(), Span::UNDEFINED, Vec::new());
        let mut body = Body { work, origin, function, info, bound, new, map, block, span, literals };
        for (_, local) in function.local_variables.iter() {
            let mut new = local.clone();
            new.ty = body.work.ty(origin, local.ty);
            new.init = local.init.map(|init| body.constant(init)).transpose()?;
            body.new.local_variables.append(new, Span::UNDEFINED);
        }
        let (written, _) = body.block(&function.body)?;
        // A variable that is only named (`_ = &x;`) remains, since it is bound.
        for (handle, expression) in function.expressions.iter().filter(|_| origin == Origin::Kernel) {
            if matches!(expression, Expression::GlobalVariable(_))
                && let Known::Value(kept) = body.get(handle)?
            {
                body.new.named_expressions.insert(kept, "kept".to_owned());
            }
        }
        let Body { mut new, map, .. } = body;
        new.body = written;
        for (handle, name) in &function.named_expressions {
            if let Some(Known::Value(value)) = map.get(handle.index()).copied().flatten() {
                new.named_expressions.insert(value, name.clone());
            }
        }
        Ok(new)
    }

    /// An expression of constants, for a variable's initial value: it is in no block.
    fn constant(&mut self, old: Handle<Expression>) -> Outcome<Handle<Expression>> {
        let mut new = self.function.expressions[old].clone();
        match &mut new {
            Expression::Compose { ty, .. } | Expression::ZeroValue(ty) => *ty = self.work.ty(self.origin, *ty),
            Expression::Constant(_) if self.origin == Origin::Library => {
                let literal = self.literal_of(old);
                new = Expression::Literal(literal.unwrap_or(Literal::U32(0)));
            }
            _ => {}
        }
        flow::replaced(|mut change| flow::change_operands(&mut new, &mut change), |operand| self.constant(operand))?;
        Ok(self.new.expressions.append(new, self.function.expressions.get_span(old)))
    }

    /// The literal that an expression is, or that a constant of the module is.
    fn literal_of(&self, old: Handle<Expression>) -> Option<Literal> {
        match self.function.expressions[old] {
            Expression::Literal(literal) => Some(literal),
            Expression::Constant(constant) => {
                let module = match self.origin {
                    Origin::Kernel => self.work.old,
                    Origin::Library => &self.work.library.module,
                };
                match module.global_expressions[module.constants[constant].init] {
                    Expression::Literal(literal) => Some(literal),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    // What is written.

    /// An expression outside every block.
    fn plain(&mut self, expression: Expression) -> Handle<Expression> {
        self.new.expressions.append(expression, self.span)
    }

    fn literal(&mut self, literal: Literal) -> Handle<Expression> {
        let is_same = |known: Literal| known == literal && Bound::of(known) == Bound::of(literal);
        if let Some(&(_, handle)) = self.literals.iter().find(|(known, _)| is_same(*known)) {
            return handle;
        }
        let handle = self.plain(Expression::Literal(literal));
        self.literals.push((literal, handle));
        handle
    }

    fn emit(&mut self, expression: Expression) -> Handle<Expression> {
        let handle = self.new.expressions.append(expression, self.span);
        if let Some(Statement::Emit(range)) = self.block.last_mut()
            && let Some((first, last)) = range.first_and_last()
            && last.index() + 1 == handle.index()
        {
            *range = Range::new_from_bounds(first, handle);
        } else {
            self.block.push(Statement::Emit(Range::new_from_bounds(handle, handle)), self.span);
        }
        handle
    }

    fn vector(&mut self, scalar: Scalar, components: Vec<Handle<Expression>>) -> Handle<Expression> {
        let size = match components.len() {
            2 => VectorSize::Bi,
            3 => VectorSize::Tri,
            _ => VectorSize::Quad,
        };
        let ty = Type { name: None, inner: vector_of(size, scalar) };
        let ty = self.work.new.types.insert(ty, Span::UNDEFINED);
        self.emit(Expression::Compose { ty, components })
    }

    /// A call of a function of the library.
    fn call(&mut self, name: &str, arguments: &[Known]) -> Outcome<Option<Handle<Expression>>> {
        let Some(&function) = self.work.library.names.get(name) else {
            return refuse("a function of the library is missing (a defect: please report it)", self.span);
        };
        self.called(Origin::Library, function, arguments, None)
    }

    /// As [`Body::call`], of a function that gives a value.
    fn value(&mut self, name: &str, arguments: &[Known]) -> Outcome<Handle<Expression>> {
        match self.call(name, arguments)? {
            Some(value) => Ok(value),
            None => refuse(NO_CODE, self.span),
        }
    }

    /// A call of the copy of a function for its arguments; literals are bound in functions of the library.
    fn called(
        &mut self,
        origin: Origin,
        function: Handle<Function>,
        arguments: &[Known],
        old: Option<Handle<Expression>>,
    ) -> Outcome<Option<Handle<Expression>>> {
        let (mut bound, mut rest) = (Vec::with_capacity(arguments.len()), Vec::new());
        for &argument in arguments {
            let fixed = match argument {
                Known::Texture(at) => Some(Bound::Texture(at)),
                Known::Sampler(at) => Some(Bound::Sampler(at)),
                Known::Literal(literal) if origin == Origin::Library => Bound::of(literal),
                _ => None,
            };
            if fixed.is_none() {
                rest.push(self.handle(argument)?);
            }
            bound.push(fixed);
        }
        let callee = self.work.function(origin, function, bound, self.span)?;
        let has_result = self.work.new.functions[callee].result.is_some();
        let result = has_result.then(|| self.plain(Expression::CallResult(callee)));
        if let (Some(old), Some(new)) = (old, result) {
            self.put(old, Known::Value(new));
        }
        self.block.push(Statement::Call { function: callee, arguments: rest, result }, self.span);
        Ok(result)
    }

    // What is read.

    fn put(&mut self, old: Handle<Expression>, new: Known) {
        if let Some(place) = self.map.get_mut(old.index()) {
            *place = Some(new);
        }
    }

    /// Returns the new form of an expression that was emitted, or that no block contains.
    fn get(&mut self, old: Handle<Expression>) -> Outcome<Known> {
        if let Some(known) = self.map.get(old.index()).copied().flatten() {
            return Ok(known);
        }
        let new = match self.function.expressions[old].clone() {
            Expression::Literal(literal) => Known::Literal(literal),
            Expression::Constant(constant) => match self.literal_of(old) {
                Some(literal) => Known::Literal(literal),
                None => Known::Value(self.plain(Expression::Constant(constant))),
            },
            Expression::ZeroValue(ty) => {
                let ty = self.work.ty(self.origin, ty);
                Known::Value(self.plain(Expression::ZeroValue(ty)))
            }
            Expression::FunctionArgument(at) => {
                let place = at as usize;
                match self.bound.get(place).copied().flatten() {
                    Some(Bound::Texture(at)) => Known::Texture(at),
                    Some(Bound::Sampler(at)) => Known::Sampler(at),
                    Some(bound) => Known::Literal(bound.literal().unwrap_or(Literal::U32(0))),
                    None => {
                        let before = self.bound.iter().take(place).filter(|bound| bound.is_some()).count();
                        let at = u32::try_from(place - before).unwrap_or(0);
                        Known::Value(self.plain(Expression::FunctionArgument(at)))
                    }
                }
            }
            Expression::GlobalVariable(variable) if self.origin == Origin::Kernel => {
                let texture = self.work.textures.iter().position(|texture| texture.variable == variable);
                let sampler = self.work.samplers.iter().position(|sampler| sampler.variable == variable);
                match (texture, sampler) {
                    (Some(at), _) => Known::Texture(at),
                    (None, Some(at)) => Known::Sampler(at),
                    (None, None) => Known::Value(self.plain(Expression::GlobalVariable(variable))),
                }
            }
            // The library has one variable.
            Expression::GlobalVariable(_) => {
                let sizes = self.work.sizes;
                Known::Value(self.plain(Expression::GlobalVariable(sizes)))
            }
            same @ (Expression::LocalVariable(_)
            | Expression::Override(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. }) => Known::Value(self.plain(same)),
            _ => return refuse(NO_CODE, self.span),
        };
        self.put(old, new);
        Ok(new)
    }

    fn handle(&mut self, known: Known) -> Outcome<Handle<Expression>> {
        match known {
            Known::Value(handle) => Ok(handle),
            Known::Literal(literal) => Ok(self.literal(literal)),
            Known::Texture(at) => match self.work.textures.get(at).map(|texture| texture.buffer) {
                Some(buffer) => Ok(self.plain(Expression::GlobalVariable(buffer))),
                None => refuse(NO_CODE, self.span),
            },
            Known::Sampler(at) => match self.work.samplers.get(at).map(|sampler| sampler.variable) {
                Some(variable) => Ok(self.plain(Expression::GlobalVariable(variable))),
                None => refuse(NO_CODE, self.span),
            },
        }
    }

    fn operand(&mut self, old: Handle<Expression>) -> Outcome<Handle<Expression>> {
        let known = self.get(old)?;
        self.handle(known)
    }

    // Statements.

    /// A block, and whether it ends with a return that was decided on.
    fn block(&mut self, old: &'a Block) -> Outcome<(Block, bool)> {
        let outer = std::mem::replace(&mut self.block, Block::new());
        let ended = self.statements(old)?;
        Ok((std::mem::replace(&mut self.block, outer), ended))
    }

    fn statements(&mut self, old: &'a Block) -> Outcome<bool> {
        for (statement, span) in old.span_iter() {
            self.span = *span;
            if self.statement(statement)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a statement; whether nothing after it runs.
    fn statement(&mut self, statement: &'a Statement) -> Outcome<bool> {
        let new = match statement {
            Statement::Emit(range) => {
                for old in range.clone() {
                    self.span = self.function.expressions.get_span(old);
                    let new = self.emitted(old)?;
                    self.put(old, new);
                }
                return Ok(false);
            }
            Statement::Block(inner) => Statement::Block(self.block(inner)?.0),
            Statement::If { condition, accept, reject } => match self.get(*condition)? {
                Known::Literal(Literal::Bool(is_so)) if self.origin == Origin::Library => {
                    return self.statements(if is_so { accept } else { reject });
                }
                condition => {
                    let condition = self.handle(condition)?;
                    Statement::If { condition, accept: self.block(accept)?.0, reject: self.block(reject)?.0 }
                }
            },
            Statement::Switch { selector, cases } => {
                let selector = self.operand(*selector)?;
                let cases = cases.iter().map(|case| {
                    let body = self.block(&case.body)?.0;
                    Ok(SwitchCase { value: case.value, body, fall_through: case.fall_through })
                });
                Statement::Switch { selector, cases: cases.try_listed()? }
            }
            Statement::Loop { body, continuing, break_if } => {
                let (body, _) = self.block(body)?;
                // What the condition needs is emitted at the end of the continuing block.
                let outer = std::mem::replace(&mut self.block, Block::new());
                self.statements(continuing)?;
                let break_if = break_if.map(|condition| self.operand(condition)).transpose()?;
                let continuing = std::mem::replace(&mut self.block, outer);
                Statement::Loop { body, continuing, break_if }
            }
            Statement::Return { value } => {
                let value = value.map(|value| self.operand(value)).transpose()?;
                self.block.push(Statement::Return { value }, self.span);
                return Ok(true);
            }
            Statement::Call { function, arguments, result } => {
                let arguments: Vec<Known> = arguments.iter().map(|&argument| self.get(argument)).try_listed()?;
                self.called(self.origin, *function, &arguments, *result)?;
                return Ok(false);
            }
            Statement::ImageStore { image, coordinate, array_index, value } if !self.is_own(*image)? => {
                self.store(*image, *coordinate, *array_index, *value)?;
                return Ok(false);
            }
            Statement::ImageAtomic { .. } => return refuse("atomic operations on textures", self.span),
            other => {
                let mut new = other.clone();
                let mut operand = |operand| self.operand(operand);
                if !flow::replaced(|mut change| flow::change_handles(&mut new, &mut change), &mut operand)? {
                    return refuse("a statement that no compute kernel has", self.span);
                }
                new
            }
        };
        self.block.push(new, self.span);
        Ok(false)
    }

    fn emitted(&mut self, old: Handle<Expression>) -> Outcome<Known> {
        let expression = &self.function.expressions[old];
        match *expression {
            Expression::ImageLoad { image, coordinate, array_index, sample, level } if !self.is_own(image)? => {
                return self.load(image, coordinate, array_index, (sample, level)).map(Known::Value);
            }
            Expression::ImageSample { image, .. } if !self.is_own(image)? => {
                return self.sample(old).map(Known::Value);
            }
            // An offset is an expression of constants, which no block need contain.
            Expression::ImageSample { offset: Some(offset), .. }
                if self.map.get(offset.index()).copied().flatten().is_none() =>
            {
                let constant = self.constant(offset)?;
                self.put(offset, Known::Value(constant));
            }
            Expression::ImageQuery { image, query } if !self.is_own(image)? => return self.query(image, query),
            Expression::Binary { op, left, right } if self.origin == Origin::Library => {
                if let (Known::Literal(left), Known::Literal(right)) = (self.get(left)?, self.get(right)?)
                    && let Some(folded) = fold::binary(op, left, right)
                {
                    return Ok(Known::Literal(folded));
                }
            }
            Expression::Unary { op, expr } if self.origin == Origin::Library => {
                if let Known::Literal(operand) = self.get(expr)?
                    && let Some(folded) = fold::unary(op, operand)
                {
                    return Ok(Known::Literal(folded));
                }
            }
            _ => {}
        }
        let mut new = expression.clone();
        if !flow::replaced(|mut change| flow::change_operands(&mut new, &mut change), |operand| self.operand(operand))?
        {
            return refuse("an expression that no compute kernel has", self.span);
        }
        if let Expression::Compose { ty, .. } = &mut new {
            *ty = self.work.ty(self.origin, *ty);
        }
        Ok(Known::Value(self.emit(new)))
    }

    // Builtins.

    fn texture(&mut self, image: Handle<Expression>) -> Outcome<usize> {
        match self.get(image)? {
            Known::Texture(at) => Ok(at),
            _ => refuse("a texture that is no variable of the module", self.span),
        }
    }

    /// Returns whether an image is a texture of the device's own API: the builtins remain as they are.
    fn is_own(&mut self, image: Handle<Expression>) -> Outcome<bool> {
        let texture = self.texture(image)?;
        Ok(self.work.textures.get(texture).is_some_and(|known| known.is_own))
    }

    /// Returns the first arguments of every function of the library.
    fn described(&self, texture: usize) -> Outcome<[Known; 4]> {
        match self.work.textures.get(texture) {
            Some(known) => Ok([
                Known::Texture(texture),
                Known::Literal(Literal::U32(known.slot)),
                Known::Literal(Literal::U32(known.format)),
                Known::Literal(Literal::U32(known.shape)),
            ]),
            None => refuse(NO_CODE, self.span),
        }
    }

    fn dimension(&self, texture: usize) -> (ViewDimension, SampleType) {
        let binding = self.work.textures.get(texture).map(|known| &known.binding);
        binding.map_or((ViewDimension::D2, SampleType::Float), |binding| (binding.dimension, binding.sample_type))
    }

    fn inner(&self, old: Handle<Expression>) -> Option<&TypeInner> {
        Some(self.info?[old].ty.inner_with(&self.work.old.types))
    }

    /// A value as numbers of another kind; conversions between integers keep the bits.
    fn converted(&mut self, known: Known, from: Option<ScalarKind>, kind: ScalarKind) -> Outcome<Known> {
        if from == Some(kind) {
            return Ok(known);
        }
        let literal = match (known, kind) {
            (Known::Literal(Literal::I32(value)), ScalarKind::Uint) => Some(Literal::U32(value.cast_unsigned())),
            (Known::Literal(Literal::U32(value)), ScalarKind::Sint) => Some(Literal::I32(value.cast_signed())),
            (Known::Literal(Literal::I32(value)), ScalarKind::Float) => Some(Literal::F32(value as f32)),
            (Known::Literal(Literal::U32(value)), ScalarKind::Float) => Some(Literal::F32(value as f32)),
            _ => None,
        };
        if let Some(literal) = literal {
            return Ok(Known::Literal(literal));
        }
        let expr = self.handle(known)?;
        Ok(Known::Value(self.emit(Expression::As { expr, kind, convert: Some(4) })))
    }

    /// A scalar or vector of the kernel as a vector of three, of numbers of a kind; what it lacks is `rest`.
    fn three(&mut self, old: Handle<Expression>, kind: ScalarKind, rest: [Literal; 2]) -> Outcome<Handle<Expression>> {
        let (size, from) = match self.inner(old) {
            Some(TypeInner::Vector { size, scalar }) => (*size as usize, Some(scalar.kind)),
            Some(inner) => (1, inner.scalar_kind()),
            None => return refuse(NO_CODE, self.span),
        };
        let value = self.get(old)?;
        let value = self.converted(value, from, kind)?;
        let value = self.handle(value)?;
        if size == 3 {
            return Ok(value);
        }
        let mut parts = Vec::with_capacity(3);
        if size == 1 {
            parts.push(value);
        } else {
            for index in 0..2 {
                parts.push(self.emit(Expression::AccessIndex { base: value, index }));
            }
        }
        for literal in rest.into_iter().skip(size - 1) {
            parts.push(self.literal(literal));
        }
        Ok(self.vector(Scalar { kind, width: 4 }, parts))
    }

    /// Computes a texel's coordinates, with the layer as the third.
    fn texel(
        &mut self,
        coordinate: Handle<Expression>,
        array_index: Option<Handle<Expression>>,
    ) -> Outcome<Handle<Expression>> {
        let zero = Literal::U32(0);
        let texel = self.three(coordinate, ScalarKind::Uint, [zero; 2])?;
        let Some(layer) = array_index else { return Ok(texel) };
        let layer = self.word(layer, ScalarKind::Uint)?;
        let layer = self.handle(layer)?;
        let x = self.emit(Expression::AccessIndex { base: texel, index: 0 });
        let y = self.emit(Expression::AccessIndex { base: texel, index: 1 });
        Ok(self.vector(Scalar::U32, vec![x, y, layer]))
    }

    /// A scalar of the kernel as a number of a kind.
    fn word(&mut self, old: Handle<Expression>, kind: ScalarKind) -> Outcome<Known> {
        let from = self.inner(old).and_then(TypeInner::scalar_kind);
        let value = self.get(old)?;
        self.converted(value, from, kind)
    }

    fn load(
        &mut self,
        image: Handle<Expression>,
        coordinate: Handle<Expression>,
        array_index: Option<Handle<Expression>>,
        (sample, level): (Option<Handle<Expression>>, Option<Handle<Expression>>),
    ) -> Outcome<Handle<Expression>> {
        let texture = self.texture(image)?;
        let (_, sample_type) = self.dimension(texture);
        let mut arguments = self.described(texture)?.to_vec();
        arguments.push(Known::Value(self.texel(coordinate, array_index)?));
        for optional in [sample, level] {
            arguments.push(match optional {
                Some(old) => self.word(old, ScalarKind::Uint)?,
                None => Known::Literal(Literal::U32(0)),
            });
        }
        let value = self.value(&format!("load_{}", suffix(sample_type)), &arguments)?;
        Ok(match sample_type {
            SampleType::Depth => self.emit(Expression::AccessIndex { base: value, index: 0 }),
            _ => value,
        })
    }

    fn store(
        &mut self,
        image: Handle<Expression>,
        coordinate: Handle<Expression>,
        array_index: Option<Handle<Expression>>,
        value: Handle<Expression>,
    ) -> Outcome<()> {
        let texture = self.texture(image)?;
        let (_, sample_type) = self.dimension(texture);
        let mut arguments = self.described(texture)?.to_vec();
        arguments.push(Known::Value(self.texel(coordinate, array_index)?));
        arguments.push(Known::Value(self.operand(value)?));
        self.call(&format!("store_{}", suffix(sample_type)), &arguments)?;
        Ok(())
    }

    fn query(&mut self, image: Handle<Expression>, query: ImageQuery) -> Outcome<Known> {
        let texture = self.texture(image)?;
        let [_, slot, _, shape] = self.described(texture)?;
        let value = match query {
            ImageQuery::Size { level } => {
                let level = match level {
                    Some(level) => self.word(level, ScalarKind::Uint)?,
                    None => Known::Literal(Literal::U32(0)),
                };
                let size = self.value("queried_size", &[slot, shape, level])?;
                match self.dimension(texture).0 {
                    ViewDimension::D3 => size,
                    ViewDimension::D1 => self.emit(Expression::AccessIndex { base: size, index: 0 }),
                    _ => {
                        let x = self.emit(Expression::AccessIndex { base: size, index: 0 });
                        let y = self.emit(Expression::AccessIndex { base: size, index: 1 });
                        self.vector(Scalar::U32, vec![x, y])
                    }
                }
            }
            ImageQuery::NumLevels => self.value("level_count", &[slot, shape])?,
            ImageQuery::NumLayers => self.value("layer_count", &[slot, shape])?,
            ImageQuery::NumSamples => {
                let samples = self.work.textures.get(texture).map_or(1, |known| known.shape >> 5);
                return Ok(Known::Literal(Literal::U32(samples)));
            }
        };
        Ok(Known::Value(value))
    }

    /// The integers of an offset, which is an expression of constants.
    fn offset(&self, old: Handle<Expression>) -> Option<Vec<i32>> {
        let constant = |expressions: &naga::Arena<Expression>, handle| integers(self.work.old, expressions, handle);
        constant(&self.function.expressions, old)
    }

    fn sample(&mut self, old: Handle<Expression>) -> Outcome<Handle<Expression>> {
        let Expression::ImageSample {
            image,
            sampler,
            gather,
            coordinate,
            array_index,
            offset,
            level,
            depth_ref,
            clamp_to_edge,
        } = self.function.expressions[old]
        else {
            return refuse(NO_CODE, self.span);
        };
        let texture = self.texture(image)?;
        let (dimension, sample_type) = self.dimension(texture);
        let Known::Sampler(sampler) = self.get(sampler)? else {
            return refuse("a sampler that is no variable of the module", self.span);
        };
        let Some(sampler) = self.work.samplers.get(sampler) else { return refuse(NO_CODE, self.span) };
        let (sampler_slot, mut modes) = (Known::Literal(Literal::U32(sampler.slot)), sampler.modes);
        if depth_ref.is_none() {
            modes &= !COMPARE;
        }
        let [texels, slot, format, shape] = self.described(texture)?;
        // A texture of one dimension is one texel high.
        let rest = [Literal::F32(if dimension == ViewDimension::D1 { 0.5 } else { 0.0 }), Literal::F32(0.0)];
        let coordinate = Known::Value(self.three(coordinate, ScalarKind::Float, rest)?);
        if clamp_to_edge {
            let modes = Known::Literal(Literal::U32(modes));
            return self.value("sample_clamped", &[texels, slot, sampler_slot, format, shape, modes, coordinate]);
        }
        let layer = match array_index {
            Some(layer) => self.layer(layer, slot, shape)?,
            None => Known::Literal(Literal::I32(0)),
        };
        let offset = match offset.map(|old| self.offset(old)) {
            Some(Some(parts)) => parts,
            Some(None) => return refuse("an offset that is no constant", self.span),
            None => Vec::new(),
        };
        if offset.iter().any(|&part| part != 0) {
            modes |= OFFSET;
        }
        let parts = (0..3).map(|axis| self.literal(Literal::I32(offset.get(axis).copied().unwrap_or(0)))).listed();
        let offset = Known::Value(self.vector(Scalar::I32, parts));
        let reference = match depth_ref {
            Some(reference) => self.get(reference)?,
            None => Known::Literal(Literal::F32(0.0)),
        };
        let modes = Known::Literal(Literal::U32(modes));
        if let Some(component) = gather {
            let component = if sample_type == SampleType::Depth { 0 } else { component as u32 };
            let component = Known::Literal(Literal::U32(component));
            let mut arguments = vec![texels, slot, format, shape, modes, component, coordinate, layer, offset];
            if matches!(sample_type, SampleType::Float | SampleType::Depth) {
                arguments.push(reference);
            }
            return self.value(&format!("gather_{}", suffix(sample_type)), &arguments);
        }
        let mut arguments = vec![texels, slot, sampler_slot, format, shape, modes, coordinate, layer, offset];
        let name = self.level(level, &mut arguments)?;
        arguments.push(reference);
        let value = self.value(name, &arguments)?;
        let is_scalar = sample_type == SampleType::Depth || depth_ref.is_some();
        Ok(if is_scalar { self.emit(Expression::AccessIndex { base: value, index: 0 }) } else { value })
    }

    /// Adds the arguments that say which level is sampled. Returns the function that takes them.
    fn level(&mut self, level: SampleLevel, arguments: &mut Vec<Known>) -> Outcome<&'static str> {
        match level {
            SampleLevel::Zero => arguments.push(Known::Literal(Literal::F32(0.0))),
            SampleLevel::Exact(level) => arguments.push(self.word(level, ScalarKind::Float)?),
            SampleLevel::Gradient { x, y } => {
                for gradient in [x, y] {
                    let gradient = self.three(gradient, ScalarKind::Float, [Literal::F32(0.0); 2])?;
                    arguments.push(Known::Value(gradient));
                }
                return Ok("sample_grad");
            }
            SampleLevel::Auto | SampleLevel::Bias(_) => {
                return refuse("a level of detail from neighbours in a picture: use textureSampleLevel", self.span);
            }
        }
        Ok("sample_level")
    }

    /// The layer that is sampled: the nearest existing one.
    fn layer(&mut self, old: Handle<Expression>, slot: Known, shape: Known) -> Outcome<Known> {
        let kind = self.inner(old).and_then(TypeInner::scalar_kind);
        let mut layer = self.get(old)?;
        if kind == Some(ScalarKind::Uint) {
            // No layer is beyond 2^31, and an index that is must not become negative.
            let arg = self.handle(layer)?;
            let most = self.literal(Literal::U32(i32::MAX.cast_unsigned()));
            let fun = naga::MathFunction::Min;
            layer = Known::Value(self.emit(Expression::Math { fun, arg, arg1: Some(most), arg2: None, arg3: None }));
        }
        let layer = self.converted(layer, kind, ScalarKind::Sint)?;
        scalar_type(&mut self.work.new, Scalar::I32);
        self.value("clamped_layer", &[slot, shape, layer]).map(Known::Value)
    }
}

fn suffix(sample_type: SampleType) -> &'static str {
    match sample_type {
        SampleType::Float | SampleType::Depth => "float",
        SampleType::Sint => "sint",
        SampleType::Uint => "uint",
    }
}

/// The integers that an expression of constants is made of.
fn integers(
    module: &naga::Module,
    expressions: &naga::Arena<Expression>,
    handle: Handle<Expression>,
) -> Option<Vec<i32>> {
    match &expressions[handle] {
        Expression::Literal(Literal::I32(value)) => Some(vec![*value]),
        Expression::ZeroValue(_) => Some(Vec::new()),
        Expression::Constant(constant) => {
            integers(module, &module.global_expressions, module.constants[*constant].init)
        }
        Expression::Compose { components, .. } => {
            let mut all = Vec::new();
            for &component in components {
                let parts = integers(module, expressions, component)?;
                // A zero of a scalar has no parts of its own.
                if parts.is_empty() { all.push(0) } else { all.extend(parts) }
            }
            Some(all)
        }
        Expression::Splat { size, value } => {
            let value = integers(module, expressions, *value)?.first().copied().unwrap_or(0);
            Some(vec![value; *size as usize])
        }
        Expression::Unary { op: naga::UnaryOperator::Negate, expr } => {
            let parts = integers(module, expressions, *expr)?;
            Some(parts.into_iter().map(i32::wrapping_neg).collect())
        }
        _ => None,
    }
}
