//! Statements: only their expressions, declarations and assignments are kept.

use super::super::tree::ExprId;
use super::Parser;

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Option<()> {
        self.attributes()?;
        self.expect(b'{')?;
        let mark = self.opened.len();
        while !self.accept(b'}') {
            self.deeper(Self::statement)?;
        }
        self.close(mark);
        Some(())
    }

    fn statement(&mut self) -> Option<()> {
        self.attributes()?;
        if self.accept(b';') {
            return Some(());
        }
        if self.is_sign(b'{') {
            return self.block();
        }
        match self.word() {
            "if" => self.branch(),
            "switch" => self.switch(),
            "loop" | "continuing" => {
                self.at += 1;
                self.block()
            }
            "while" => {
                self.at += 1;
                self.expression()?;
                self.block()
            }
            "for" => self.counted(),
            "break" => {
                self.at += 1;
                if self.accept_word("if") {
                    self.expression()?;
                }
                self.expect(b';')
            }
            "return" => {
                self.at += 1;
                if !self.is_sign(b';') {
                    self.expression()?;
                }
                self.expect(b';')
            }
            "continue" | "discard" => {
                self.at += 1;
                self.expect(b';')
            }
            "const_assert" => self.assertion(),
            _ => {
                self.simple()?;
                self.expect(b';')
            }
        }
    }

    fn branch(&mut self) -> Option<()> {
        loop {
            self.at += 1;
            self.expression()?;
            self.block()?;
            if !self.accept_word("else") {
                return Some(());
            }
            if self.word() != "if" {
                return self.block();
            }
        }
    }

    fn switch(&mut self) -> Option<()> {
        self.at += 1;
        self.expression()?;
        self.attributes()?;
        self.expect(b'{')?;
        while !self.accept(b'}') {
            if self.accept_word("case") {
                while !self.is_sign(b':') && !self.is_sign(b'{') && !self.is_sign(b'@') {
                    if !self.accept_word("default") {
                        self.expression()?;
                    }
                    if !self.accept(b',') {
                        break;
                    }
                }
            } else if !self.accept_word("default") {
                return None;
            }
            self.accept(b':');
            self.block()?;
        }
        Some(())
    }

    fn counted(&mut self) -> Option<()> {
        self.at += 1;
        self.expect(b'(')?;
        let mark = self.opened.len();
        if !self.is_sign(b';') {
            self.simple()?;
        }
        self.expect(b';')?;
        if !self.is_sign(b';') {
            self.expression()?;
        }
        self.expect(b';')?;
        if !self.is_sign(b')') {
            self.simple()?;
        }
        self.expect(b')')?;
        self.block()?;
        self.close(mark);
        Some(())
    }

    /// A declaration, an assignment or a call.
    fn simple(&mut self) -> Option<()> {
        if matches!(self.word(), "let" | "var" | "const") {
            let decl = self.variable()?;
            return self.declare(decl);
        }
        if self.word() == "_" {
            self.at += 1;
            self.expect(b'=')?;
            return self.expression().map(|_| ());
        }
        let target = self.unary()?;
        let signs = self.glued();
        let length = match signs {
            [b'=', _, _] => 1,
            [b'+', b'+', _] | [b'-', b'-', _] | [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _] => 2,
            [b'<', b'<', b'='] | [b'>', b'>', b'='] => 3,
            _ => return Some(()),
        };
        self.at += length;
        self.write(target);
        if signs[0] != signs[1] || length != 2 {
            self.expression()?;
        }
        Some(())
    }

    /// Notes that the variable of a reference may change.
    pub(super) fn write(&mut self, target: ExprId) {
        if let Some(decl) = self.tree.root(target).and_then(|id| self.tree.decls.get_mut(id as usize)) {
            decl.is_written = true;
        }
    }
}
